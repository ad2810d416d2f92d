# SPDX-License-Identifier: BSD-2-Clause
"""Error rates of verdicts and the boots that they need, by experiments drawn from recorded and from generated boots.

`./dev bench stats [SAMPLES.csv ...]` prints a table; the default is the recorded file. A file is the samples.csv of a
run whose plan boots the baseline, another variant with the same tunables, and a third one, in this order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perfweb.runs import costs
from perfweb.stats.boots import Boots
from perfweb.stats.comparison import Verdict, compare_boots
from perfweb.stats.samples import read_samples
from perfweb.stats.sequential import decide
from perfweb.stats.student import difference
from perfweb.stats.summary import summarize

RECORDED = Path(__file__).parent / "data" / "a-a-b.csv"

WARM_UP = 1

MOST_BOOTS = 40

Pair = tuple[list[float], list[float]]
Draw = Callable[[np.random.Generator, int], list[Pair]]
"""Draws that many boots of each variant: their samples, in pairs in the order of the recording."""


@dataclass(frozen=True)
class Outcome:
    """The verdict of an experiment, with the boots of each variant and the samples of each boot that it took."""

    verdict: Verdict
    boots: int
    samples: int

    @property
    def minutes(self) -> float:
        """The time that it took, with samples of one second."""
        return 2 * self.boots * (costs.BOOT_SECONDS + costs.measuring(self.samples + WARM_UP, 1)) / 60


@dataclass(frozen=True)
class Design:
    """A way to judge boots in their order, and the samples that it needs of each."""

    samples: int
    judge: Callable[[list[Pair]], Outcome]


def fixed(boots: int, samples: int) -> Design:
    """Judge once, after a number of boots."""

    def judge(pairs: list[Pair]) -> Outcome:
        a, b = _sides(pairs[:boots], samples)
        return Outcome(compare_boots(a, b, "higher").verdict, boots, samples)

    return Design(samples, judge)


def sequential(samples: int, *, as_pages: bool = False) -> Design:
    """Judge after each pair of boots until it is decided; then maybe once more, as the pages do."""

    def judge(pairs: list[Pair]) -> Outcome:
        for boots in range(2, len(pairs) + 1):
            decision = decide([([a[:samples]], [b[:samples]]) for a, b in pairs[:boots]])
            if decision.decided:
                break
        if as_pages:
            return Outcome(compare_boots(*_sides(pairs[:boots], samples), "higher").verdict, boots, samples)
        return Outcome(decision.verdict, boots, samples)

    return Design(samples, judge)


def impatient(samples: int) -> Design:
    """Test Student's t over all samples after each pair of boots until it proves a difference: a bad practice."""

    def judge(pairs: list[Pair]) -> Outcome:
        for boots in range(2, len(pairs) + 1):
            a, b = (summarize([value for boot in side for value in boot]) for side in _sides(pairs[:boots], samples))
            found = difference(a, b)
            if found.proven:
                return Outcome(Verdict.FASTER if found.absolute > 0 else Verdict.SLOWER, boots, samples)
        return Outcome(Verdict.NOT_ENOUGH_DATA, boots, samples)

    return Design(samples, judge)


def _sides(pairs: Iterable[Pair], samples: int) -> tuple[Boots, Boots]:
    a, b = zip(*((a[:samples], b[:samples]) for a, b in pairs), strict=True)
    return a, b


def made_up(gain: float, scatter: float) -> Draw:
    """Generate boots that scatter by that percentage, samples by one, and a second variant `gain` times as fast."""

    def draw(random: np.random.Generator, n: int) -> list[Pair]:
        boots = 1 + scatter / 100 * random.normal(size=(n, 2, 1)) + random.normal(size=(n, 2, 5)) / 100
        return [(a.tolist(), (gain * b).tolist()) for a, b in 1000 * boots]

    return draw


def recorded(pairs: list[Pair], *, exchange: bool, gain: float = 1.0) -> Draw:
    """Draw recorded pairs with replacement; `exchange` swaps each at random, so that there is no difference."""

    def draw(random: np.random.Generator, n: int) -> list[Pair]:
        drawn = []
        for index, turned in zip(random.integers(len(pairs), size=n), random.integers(2, size=n), strict=True):
            a, b = pairs[index][:: -1 if exchange and turned else 1]
            drawn.append((a, [gain * value for value in b]))
        return drawn

    return draw


def scenarios(paths: Iterable[Path]) -> Iterator[tuple[str, Draw]]:
    """Name the sources of experiments: generated boots, and for each recorded test A/A and A/B."""
    for scatter in (0.3, 1.0, 3.0):
        for gain in (1.0, 1.02, 1.1):
            yield f"made up, boots ±{scatter} %, change {gain - 1:+.0%}", made_up(gain, scatter)
    for path in paths:
        for metric in read_samples(path):
            if metric.direction != "higher":
                continue
            test, (a, again, b) = metric.test, metric.variants.values()
            yield f"{test}, A/A", recorded(list(zip(a, again, strict=False)), exchange=True)
            yield f"{test}, A/A +2 %", recorded(list(zip(a, again, strict=False)), exchange=True, gain=1.02)
            change = np.mean([np.mean(boot) for boot in b]) / np.mean([np.mean(boot) for boot in a]) - 1
            yield f"{test}, A/B {change:+.0%}", recorded(list(zip(a, b, strict=False)), exchange=False)


DESIGNS = {
    "2 boots x 5": fixed(2, 5),
    "5 boots x 2": fixed(5, 2),
    "10 boots x 1": fixed(10, 1),
    "sequential x 2": sequential(2),
    "then as pages": sequential(2, as_pages=True),
    "impatient x 2": impatient(2),
}


def outcomes(draw: Draw, design: Design, experiments: int, seed: int = 1) -> list[Outcome]:
    """Repeat an experiment with that many draws; none if boots have fewer samples than the design needs."""
    random = np.random.default_rng(seed)
    if len(draw(random, 1)[0][0]) < design.samples:
        return []
    return [design.judge(draw(random, MOST_BOOTS)) for _ in range(experiments)]


def line(scenario: str, design: str, found: list[Outcome]) -> str:
    shares = [
        f"{100 * sum(outcome.verdict is verdict for outcome in found) / len(found):8.1f}"
        for verdict in (Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT, Verdict.NOT_ENOUGH_DATA)
    ]
    boots, minutes = (float(np.mean(values)) for values in zip(*((o.boots, o.minutes) for o in found), strict=True))
    return f"{scenario:38}  {design:15}{''.join(shares)}{boots:8.1f}{minutes:8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench stats", description=__doc__)
    parser.add_argument("--only", default="", help="only scenarios whose name contains this")
    parser.add_argument("samples", nargs="*", type=Path, default=[RECORDED], help="samples.csv of runs")
    parser.add_argument("--experiments", type=int, default=400, help="how many of each kind (400)")
    arguments = parser.parse_args()
    print(f"{'drawn from':38}  {'design':15}{'faster':>8}{'slower':>8}{'equal':>8}{'open':>8}{'boots':>8}{'min':>8}")
    for scenario, draw in scenarios(arguments.samples):
        for name, design in DESIGNS.items() if arguments.only in scenario else ():
            if found := outcomes(draw, design, arguments.experiments):
                print(line(scenario, name, found), flush=True)


if __name__ == "__main__":
    main()
