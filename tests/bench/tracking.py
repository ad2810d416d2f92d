# SPDX-License-Identifier: BSD-2-Clause
"""How well changes of level are found in series, beside the simple rules of the field: `./dev bench tracking`.

A made-up series has 100 commits and maybe a step at the 60th. Its noise is drawn from the recorded boots of a run
that measured the same all the time (tests/bench/data), as far as they lie from their median, scaled to a deviation of
1 % of a point. Nothing is adjusted to the outcome, and every number depends on the seed alone.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from perfweb.stats.changepoint import change_points, divide
from tests.bench.fieldrules import mann_whitney, percentage, quartiles, three_sigma
from tests.bench.stats import RECORDED
from tests.stack.races import replace_between

Numbers = npt.NDArray[np.float64]
Method = Callable[[Sequence[float]], list[int]]

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "tracking.md"
BEGIN, END = "<!-- detection: ./dev bench tracking --write -->", "<!-- end of detection -->"
FREEBSD = Path(__file__).resolve().parents[1] / "unit" / "imports" / "data" / "freebsd-head-2015-forwarding.csv"
COMMITS, STEP = 100, 60
SIZES = (0.5, 1, 2, 5, 10, 20)
LAGS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40)
"""Numbers of points from the step on, after which every method looks at the series."""
INTRODUCTION = """\
Of {series} made-up series for each number, with 100 commits, a noise of 1 % and a step at the 60th (seeded: the same
in every run). *False* are alarms in a hundred commits without a step. *Found* is the share of steps with a change told
within three commits of it, *precision* the share of all changes told that are these, and *delay* the median of how many
commits with the step it takes until it is first told; a minus where most are not.
"""
KNOWN = "r284739 made all slower and r285702, or one shortly before it, fast again."
NEAR = 3
"""Points by which a place may be wrong."""
METHODS: dict[str, Method] = {
    "levels (ours)": lambda values: [found.place for found in change_points(values)],
    "energy distance (ours, as a second opinion)": divide,
    "5 % from the point before": percentage,
    "three sigma of ten points": three_sigma,
    "Mann-Whitney, 5 points against 10": mann_whitney,
    "interquartile fence of 20 points": quartiles,
}


def recorded_noise() -> Numbers:
    """Relative deviations of recorded boots that were alike, with a standard deviation of 1 %."""
    found = []
    for boots in _alike().values():
        means = np.array([np.mean(boot) for boot in boots])
        found.append((means / np.median(means) - 1) / _deviation(means / np.median(means)))
    return np.concatenate(found) * 0.01


def _alike() -> dict[str, list[list[float]]]:
    """The samples of the baseline, boot by boot, of each test."""
    boots: dict[str, dict[int, list[float]]] = {}
    with RECORDED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["variant"] == "deferred" and row["discarded"] == "false":
                boots.setdefault(row["test"], {}).setdefault(int(row["boot"]), []).append(float(row["value"]))
    return {test: list(found.values()) for test, found in boots.items()}


def _deviation(values: Numbers) -> float:
    """From the quartiles, which a few bad boots do not move; a normal distribution has 1.349 between them."""
    low, high = np.percentile(values, [25, 75])
    return float(high - low) / 1.349


def plain(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """Noise as recorded, without its outliers."""
    calm = noise[np.abs(noise) < 0.03]
    return 1 + rng.choice(calm, COMMITS)


def outliers(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """One point in twenty is 5 to 15 % low."""
    hit = rng.random(COMMITS) < 0.05
    return plain(rng, noise) * np.where(hit, 1 - rng.uniform(0.05, 0.15, COMMITS), 1.0)


def modes(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """One point in three is in another mode, 4 % higher."""
    return plain(rng, noise) * np.where(rng.random(COMMITS) < 1 / 3, 1.04, 1.0)


def drift(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """The level rises by 3 % over all commits."""
    return plain(rng, noise) * np.linspace(1, 1.03, COMMITS)


KINDS = {"plain": plain, "outliers": outliers, "two modes": modes, "drift": drift}


@dataclass
class Score:
    """What a method told of many series: alarms where there is no step; of steps how many, how soon, and what else."""

    false: int = 0
    quiet: int = 0
    found: int = 0
    wrong: int = 0
    stepped: int = 0
    delays: list[float] = field(default_factory=list)


def score(method: Method, kind: str, size: float, series: int, noise: Numbers) -> Score:
    """Judge a method by so many series with a step of a size in percent, half of them down; none for a size of zero."""
    rng = np.random.default_rng([list(KINDS).index(kind), round(size * 10), series])
    total = Score()
    for number in range(series):
        values = KINDS[kind](rng, noise)
        if not size:
            total.quiet += 1
            total.false += len(method(values.tolist()))
            continue
        values[STEP:] *= 1 + size / 100 * (1 if number % 2 else -1)
        told = method(values.tolist())
        total.stepped += 1
        total.found += any(abs(place - STEP) <= NEAR for place in told)
        total.wrong += sum(abs(place - STEP) > NEAR for place in told)
        soon = (
            lag for lag in LAGS if any(abs(place - STEP) <= NEAR for place in method(values[: STEP + lag].tolist()))
        )
        total.delays.append(next(soon, math.inf))
    return total


def table(series: int) -> str:
    """All methods and kinds of series as Markdown."""
    noise = recorded_noise()
    lines = [INTRODUCTION.format(series=series)]
    for kind, make in KINDS.items():
        lines += [f"**{kind}**: {make.__doc__}\n", _head(), _rule()]
        for name, method in METHODS.items():
            lines.append(_row(name, method, kind, series, noise))
            print(kind, lines[-1], flush=True)
        lines.append("")
    return "\n".join([*lines, *real(), ""])


def _head() -> str:
    return "| | false | " + " | ".join(f"{size:g} %: found, delay" for size in SIZES) + " | precision |"


def _rule() -> str:
    return "|---|" + "---|" * (len(SIZES) + 2)


def _row(name: str, method: Method, kind: str, series: int, noise: Numbers) -> str:
    quiet = score(method, kind, 0, series, noise)
    cells, right, all_told = [], 0, 0
    for size in SIZES:
        got = score(method, kind, size, series, noise)
        delay = float(np.median(got.delays))
        cells.append(f"{got.found / got.stepped:.0%}, {'-' if math.isinf(delay) else f'{delay:g}'}")
        right, all_told = right + got.found, all_told + got.found + got.wrong
    precision = f"{right / all_told:.0%}" if all_told else "-"
    return f"| {name} | {quiet.false / quiet.quiet:.2f} | " + " | ".join(cells) + f" | {precision} |"


def real() -> list[str]:
    """What the methods tell of a year of FreeBSD: revisions, by the means of five samples."""
    with FREEBSD.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    revisions = list(dict.fromkeys(row["revision"] for row in rows))
    tests = list(dict.fromkeys(row["test"] for row in rows))
    lines = [
        f"**A year of FreeBSD 11-head, forwarding**, {len(revisions)} revisions. {KNOWN}\n",
        "| | " + " | ".join(tests) + " |",
        "|---|" + "---|" * len(tests),
    ]
    for name, method in METHODS.items():
        told: list[str] = []
        for test in tests:
            rates = [
                [float(row["pps"]) for row in rows if (row["revision"], row["test"]) == (it, test)] for it in revisions
            ]
            told.append(", ".join(f"r{revisions[place]}" for place in method([float(np.mean(rate)) for rate in rates])))
        lines.append(f"| {name} | " + " | ".join(one or "none" for one in told) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench tracking", description=__doc__)
    parser.add_argument("--series", type=int, default=60, help="for each number (60)")
    parser.add_argument("--write", action="store_true", help="into docs/tracking.md")
    options = parser.parse_args()
    text = table(options.series)
    print(text)
    if options.write:
        replace_between(DOCUMENT, BEGIN, END, text)


if __name__ == "__main__":
    main()
