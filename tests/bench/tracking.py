# SPDX-License-Identifier: BSD-2-Clause
"""The accuracy of change points in series, compared with the simple rules of the field: `./dev bench tracking`.

A generated series has 100 commits and maybe a step at the 61st. Its noise is drawn from the recorded boots of an A/A
run (tests/bench/data), as deviations from their median, scaled to a deviation of 1 % of a point. A series grows commit
by commit, and every method runs after each commit, as in the service: a reported change counts once, even if it is
withdrawn later. Nothing is tuned to the result, and every number depends on the seed alone.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import signal as filters

from perfweb.stats.changepoint import change_points, divide
from tests.bench.fieldrules import mann_whitney, otava, percentage, quartiles, three_sigma
from tests.bench.stats import RECORDED
from tests.stack.races import replace_between

Numbers = npt.NDArray[np.float64]
Method = Callable[[Sequence[float]], list[int]]

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "measured" / "tracking.md"
BEGIN, END = "<!-- detection: ./dev bench tracking --write -->", "<!-- end of detection -->"
FREEBSD = Path(__file__).resolve().parents[1] / "unit" / "imports" / "data" / "freebsd-head-2015-forwarding.csv"
NOISE_BEGIN, NOISE_END = "<!-- kinds of noise: ./dev bench tracking --noise --write -->", "<!-- end of kinds -->"
COMMITS, STEP = 100, 60
SIZES = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
QUICK_SIZES = (0.0, 5.0)
INTRODUCTION = """\
Each number is from {series} synthetic series with 100 commits, a noise of 1 % and a step at commit 61, analysed after
each commit. The series are seeded, so they are the same in every run. Energy distances with random permutations are the
method that MongoDB published (Daly and others 2020, "The use of change point detection to identify software performance
regressions in a continuous integration system", ICPE).

| column | meaning |
|---|---|
| false | alarms in a hundred commits without a step, including those that were withdrawn later |
| found | share of series with an alarm within three commits of the step; at 0 % these are chance |
| delay | median number of commits with the step before the alarm; a minus if most steps are not found |
| precision | share of these alarms in all alarms from the step on |
"""
NOISE_INTRODUCTION = """\
Each row is from {series} series with 100 commits without a step, and as many with a step of 2 % at commit 61, none of
which was used to select the models. *False* is alarms in a hundred commits without a step, *found* the share of steps
with an alarm within ten commits. The *reference* has normal noise of 1 % of its own, and in drift, AR(1), cycle and
random walk also the series' noise, which is the machine's there. White noise is of the test alone. Apache Otava is
included where it is installed: `.venv/bin/pip install --no-deps apache-otava==0.8.0`.
"""
KNOWN = "r284739 made all slower and r285702, or one shortly before it, fast again."
NEAR = 3
"""Max error of a place, in points."""
TOGETHER = 5
"""Points within which reports are one alarm."""
FIRST = 6
"""Min points of a series."""
METHODS: dict[str, Method] = {
    "levels (perfweb)": lambda values: [found.place for found in change_points(values)],
    "energy distance (perfweb, second opinion)": divide,
    "5 % from the point before": percentage,
    "three sigma of ten points": three_sigma,
    "Mann-Whitney, 5 points against 10": mann_whitney,
    "interquartile fence of 20 points": quartiles,
}
WITH_REFERENCE = "levels and a reference"
NOISE_METHODS: dict[str, Method] = {
    "levels (perfweb)": METHODS["levels (perfweb)"],
    WITH_REFERENCE: METHODS["levels (perfweb)"],
    **({"Apache Otava": otava} if find_spec("otava") else {}),
}
"""Methods that every kind of noise is tried with: Otava only where it is installed."""


def recorded_noise() -> Numbers:
    """Relative deviations of recorded A/A boots, with a standard deviation of 1 %."""
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
    """Scale from the quartiles, which a few bad boots do not affect; a normal distribution has 1.349 between them."""
    low, high = np.percentile(values, [25, 75])
    return float(high - low) / 1.349


def recorded(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """Noise as recorded, with its outliers."""
    return 1 + rng.choice(noise, COMMITS)


def calm(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """Noise as recorded, up to three deviations."""
    return 1 + rng.choice(noise[np.abs(noise) < 0.03], COMMITS)


def outliers(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """One point in twenty is 5 to 15 % low."""
    hit = rng.random(COMMITS) < 0.05
    return calm(rng, noise) * np.where(hit, 1 - rng.uniform(0.05, 0.15, COMMITS), 1.0)


def modes(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """One point in three is in another mode, 4 % higher."""
    return calm(rng, noise) * np.where(rng.random(COMMITS) < 1 / 3, 1.04, 1.0)


def drift(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """The level rises by 3 % over all commits."""
    return calm(rng, noise) * _rise(rng)


def _rise(_rng: np.random.Generator) -> Numbers:
    return np.linspace(1, 1.03, COMMITS)


def white(rng: np.random.Generator, _noise: Numbers) -> Numbers:
    """Normal noise."""
    return 1 + 0.01 * rng.normal(size=COMMITS)


def _autocorrelated(rng: np.random.Generator, memory: float) -> Numbers:
    """Normal noise of 1 %, each point with a share of the deviation of the point before."""
    shocks = math.sqrt(1 - memory**2) * rng.normal(size=COMMITS + 50)
    return 1 + 0.01 * filters.lfilter([1], [1, -memory], shocks)[50:]


def weak_memory(rng: np.random.Generator, _noise: Numbers) -> Numbers:
    """AR(1) noise with a coefficient of 0.3."""
    return _weak(rng)


def _weak(rng: np.random.Generator) -> Numbers:
    return _autocorrelated(rng, 0.3)


def _strong(rng: np.random.Generator) -> Numbers:
    return _autocorrelated(rng, 0.6)


def strong_memory(rng: np.random.Generator, _noise: Numbers) -> Numbers:
    """AR(1) noise with a coefficient of 0.6."""
    return _strong(rng)


def cycle(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """Normal noise, and a sine with an amplitude of 1 % and a period of 50 commits."""
    return white(rng, noise) + _sine(rng) - 1


def _sine(rng: np.random.Generator) -> Numbers:
    return 1 + 0.01 * np.sin(2 * np.pi * (np.arange(COMMITS) / 50 + rng.random()))


def blocks(rng: np.random.Generator, _noise: Numbers) -> Numbers:
    """Normal noise of 0.5 % and of 2 %, in turn for 25 commits."""
    return 1 + np.where(np.arange(COMMITS) // 25 % 2 == 0, 0.005, 0.02) * rng.normal(size=COMMITS)


def ramp(rng: np.random.Generator, _noise: Numbers) -> Numbers:
    """Normal noise that rises from 0.5 % to 2 %."""
    return 1 + np.linspace(0.005, 0.02, COMMITS) * rng.normal(size=COMMITS)


def walk(rng: np.random.Generator, noise: Numbers) -> Numbers:
    """Normal noise, and a random walk with steps of 0.3 %."""
    return white(rng, noise) + _steps(rng) - 1


def _steps(rng: np.random.Generator) -> Numbers:
    return 1 + np.cumsum(0.003 * rng.normal(size=COMMITS))


def _still(_rng: np.random.Generator, _noise: Numbers) -> Numbers:
    return np.ones(COMMITS)


DETAILED = {"as recorded": recorded, "outliers": outliers, "two modes": modes, "drift": drift}
"""Kinds of noise that all methods and sizes are tried with."""

KINDS = {
    **DETAILED, "white": white, "AR(1) 0.3": weak_memory, "AR(1) 0.6": strong_memory, "cycle": cycle,
    "scatter in blocks": blocks, "rising scatter": ramp, "random walk": walk,
}  # fmt: skip
WITHIN, NOISE_SIZE = 10, 2.0
HELD_OUT = 1000
"""Number of the first series in kinds of noise: the models were selected with those before."""

MACHINE: dict[str, tuple[Callable[..., Numbers], Callable[[np.random.Generator], Numbers]]] = {
    "drift": (calm, _rise), "AR(1) 0.3": (_still, _weak), "AR(1) 0.6": (_still, _strong), "cycle": (white, _sine),
    "random walk": (white, _steps),
}  # fmt: skip
"""Noises of the machine: the part of the test alone, which is drawn first, and the part that a reference has, too."""

REFERENCED = {*MACHINE, "white"}
"""Noises that a reference is tried with: those of the machine, and one of the test alone."""


@dataclass
class Score:
    """The reports of a method on series with a step: how many found it, the delays, and the number of other reports."""

    found: int = 0
    wrong: int = 0
    delays: list[float] = field(default_factory=list)

    def cell(self) -> str:
        """Found, delay and precision, as a cell of the table."""
        delay, reported = float(np.median(self.delays)), self.found + self.wrong
        return " | ".join((
            f"{self.found / len(self.delays):.0%}",
            "-" if math.isinf(delay) else f"{delay:g}",
            f"{self.found / reported:.0%}" if reported else "-",
        ))  # fmt: skip


def alarms(places: Iterable[int], together: int = TOGETHER) -> list[list[int]]:
    """Return reports in groups of close places: each group is one alarm."""
    groups: list[list[int]] = []
    for place in sorted(set(places)):
        if groups and place - groups[-1][-1] <= together:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def near(place: int) -> bool:
    """Return whether this is the place of the step."""
    return abs(place - STEP) <= NEAR


def false_alarms(method: Method, values: Sequence[float]) -> int:
    """Alarms of a growing series without a step."""
    return len(alarms(place for length in range(FIRST, len(values) + 1) for place in method(values[:length])))


def judge(method: Method, values: Sequence[float], score: Score) -> None:
    """Add the reports of a series from its step on to a score, without those made before the step."""
    before = method(values[:STEP])
    reported, delay = list[int](), math.inf
    for length in range(STEP + 1, len(values) + 1):
        new = [place for place in method(values[:length]) if place not in before]
        if math.isinf(delay) and any(map(near, new)):
            delay = length - STEP
        reported += new
    score.delays.append(delay)
    score.found += not math.isinf(delay)
    score.wrong += sum(not any(map(near, group)) for group in alarms(reported))


def series_of(kind: str, size: float, number: int, noise: Numbers) -> list[float]:
    """A series with a step of a size in percent, every other one down."""
    rng = np.random.default_rng([list(KINDS).index(kind), round(size * 10), number])
    values = KINDS[kind](rng, noise)
    values[STEP:] *= 1 + size / 100 * (1 if number % 2 else -1)
    return [float(value) for value in values]


def reference_of(kind: str, size: float, number: int, noise: Numbers) -> list[float]:
    """What a reference measures in the runs of this series: the noise of the machine, and normal noise of its own."""
    level, seed = np.ones(COMMITS), [list(KINDS).index(kind), round(size * 10), number]
    own = np.random.default_rng([len(KINDS), *seed])
    if kind in MACHINE:
        rng = np.random.default_rng(seed)
        alone, machine = MACHINE[kind]
        alone(rng, noise)
        level = machine(rng)
    return [float(value) for value in level + white(own, noise) - 1]


def row(name: str, kind: str, series: int, sizes: Sequence[float]) -> str:
    """A line of the table: the results of a method on that many series of a kind."""
    noise, method, cells = recorded_noise(), METHODS[name], list[str]()
    false = sum(false_alarms(method, series_of(kind, 0, number, noise)) for number in range(series))
    for size in sizes:
        score = Score()
        for number in range(series):
            judge(method, series_of(kind, size, number, noise), score)
        cells.append(score.cell())
    return f"| {name} | {false / series:.2f} | " + " | ".join(cells) + " |"


def noise_cells(kind: str, name: str, series: int) -> str:
    """False alarms in a hundred commits, and the share of 2 % steps found within ten commits, as two cells."""
    noise, score, false = recorded_noise(), Score(), 0
    for number in range(HELD_OUT, HELD_OUT + series):
        false += false_alarms(_noise_method(name, kind, 0, number), series_of(kind, 0, number, noise))
        values = series_of(kind, NOISE_SIZE, number, noise)[: STEP + WITHIN]
        judge(_noise_method(name, kind, NOISE_SIZE, number), values, score)
    return f"{false / series:.2f} | {score.found / series:.0%}"


def _noise_method(name: str, kind: str, size: float, number: int) -> Method:
    """Return a method, with the reference of a series if it uses one."""
    if name != WITH_REFERENCE:
        return NOISE_METHODS[name]
    reference = reference_of(kind, size, number, recorded_noise())
    return lambda values: [found.place for found in change_points(values, reference[: len(values)])]


def noise_table(series: int, kinds: Sequence[str]) -> str:
    """perfweb's method and the published ones as Markdown, in kinds of noise."""
    with ProcessPoolExecutor(initializer=_prepare_worker) as pool:
        cells = {
            (kind, name): pool.submit(noise_cells, kind, name, series)
            for kind in kinds
            for name in NOISE_METHODS
            if name != WITH_REFERENCE or kind in REFERENCED
        }
        lines = [
            NOISE_INTRODUCTION.format(series=series),
            "| noise | | " + " | ".join(f"{name}: false | found" for name in NOISE_METHODS) + " |",
            "|---|---|" + "---|---|" * len(NOISE_METHODS),
        ]
        for kind in kinds:
            results = [cells[kind, name].result() if (kind, name) in cells else "- | -" for name in NOISE_METHODS]
            found = " | ".join(results)
            lines.append(f"| {kind} | {KINDS[kind].__doc__} | {found} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join([*lines, ""])


def _prepare_worker() -> None:
    """Leave CPU time to other processes, and end at Ctrl-C without a traceback."""
    os.nice(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def table(series: int, sizes: Sequence[float], kinds: Sequence[str]) -> str:
    """All methods as Markdown, on some kinds of series."""
    head = "| | false | " + " | ".join(f"{size:g} %: found | delay | precision" for size in sizes) + " |"
    with ProcessPoolExecutor(initializer=_prepare_worker) as pool:
        rows = {
            (kind, name): pool.submit(row, name, kind, series, sizes) for kind in kinds for name in METHODS
        }  # fmt: skip
        lines = [INTRODUCTION.format(series=series)]
        for kind in kinds:
            lines += [f"**{kind}**: {KINDS[kind].__doc__}\n", head, "|---|" + "---|" * (3 * len(sizes) + 1)]
            for name in METHODS:
                lines.append(rows[kind, name].result())
                print(kind, lines[-1], file=sys.stderr, flush=True)
            lines.append("")
    return "\n".join([*lines, *real(), ""])


def real() -> list[str]:
    """The reports of the methods for a year of FreeBSD: revisions, by the means of five samples."""
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
        cells: list[str] = []
        for test in tests:
            rates = [
                [float(row["pps"]) for row in rows if (row["revision"], row["test"]) == (it, test)] for it in revisions
            ]
            found = alarms(method([float(np.mean(rate)) for rate in rates]), together=1)
            cells.append(", ".join(f"r{revisions[group[0]]}" for group in found))
        lines.append(f"| {name} | " + " | ".join(one or "none" for one in cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench tracking", description=__doc__)
    parser.add_argument("--series", type=int, default=40, help="for each number (40)")
    parser.add_argument(
        "--quick", action="store_true", help="two series of a kind and two sizes, to see whether it works"
    )
    parser.add_argument("--noise", action="store_true", help="methods with a model in more kinds of noise, 2 % only")
    parser.add_argument("--write", action="store_true", help="into docs/measured/tracking.md")
    options = parser.parse_args()
    if options.series < 1:
        parser.error("--series: at least one")
    if options.quick and options.write:
        parser.error("--quick says nothing that the documentation should have")
    series = 2 if options.quick else options.series
    if options.noise:
        text, marks = noise_table(series, ["white"] if options.quick else list(KINDS)), (NOISE_BEGIN, NOISE_END)
    elif options.quick:
        text, marks = table(series, QUICK_SIZES, ["as recorded"]), (BEGIN, END)
    else:
        text, marks = table(series, SIZES, list(DETAILED)), (BEGIN, END)
    print(text)
    if options.write:
        replace_between(DOCUMENT, *marks, text)


if __name__ == "__main__":
    main()
