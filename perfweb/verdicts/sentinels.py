# SPDX-License-Identifier: BSD-2-Clause
"""The sentinel of a run: the drift of the testbed, and the verdicts that it puts in doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.contrib.postgres.aggregates import ArrayAgg

from perfweb.runs.calibration import noises
from perfweb.runs.models import Run, Sample
from perfweb.runs.planfile import SENTINEL
from perfweb.stats.comparison import Verdict
from perfweb.stats.drift import FEWEST_BOOTS, Drift, Watched, drift, lean
from perfweb.stats.ratio import Change
from perfweb.verdicts import names
from perfweb.verdicts.wording import change_words

DOUBTFUL = 0.5
"""A verdict is in doubt when the sentinel's lean is this share of the change, or of the margin if it is equivalent."""

MOST_NAMED = 3
"""Max number of drifting tests that a sentence names, those with the largest drift; a table has all of them."""


@dataclass(frozen=True)
class Line:
    """The boots of a variant of the run, in their order; `position` is the variant's position in the plan."""

    position: int
    boots: list[Watched]


@dataclass(frozen=True)
class WatchedTest:
    """A test on the boots of the sentinel and, by their names, on those of the variants; `calibrated` is whether its
    noise on the testbed is known from a calibration.
    """

    test: str
    sentinel: list[Watched]
    variants: Mapping[str, Line]
    drift: Drift
    calibrated: bool

    def doubt(self, sides: tuple[str, str], verdict: Verdict, seen: Change | None, margin: float) -> float | None:
        """Return how much higher the sentinel was, in percent, with the boots of the second side than with those of the
        first, None if that does not affect the verdict.
        """
        if seen is None or verdict is Verdict.NOT_ENOUGH_DATA or not all(side in self.variants for side in sides):
            return None
        a, b = (self.variants[side].boots for side in sides)
        found, about = lean(self.sentinel, a, b), margin if verdict is Verdict.EQUIVALENT else abs(seen.percent)
        return found if found is not None and abs(found) >= DOUBTFUL * about else None


@dataclass(frozen=True)
class Sentinel:
    """The repeatedly booted variant of a run, and its drift in each test."""

    run: int
    variant: str
    tests: list[WatchedTest]

    @cached_property
    def moved(self) -> list[WatchedTest]:
        """The tests with a proven drift, the largest first."""
        proven = [test for test in self.tests if test.drift.proven]
        return sorted(proven, key=lambda test: -abs(test.drift.total))

    @property
    def words(self) -> str:
        """Describe the drift in a sentence or two."""
        if not self.moved:
            return self._unmoved()
        first, *others = self.moved[:MOST_NAMED]
        named = ", ".join([_movement(first), *map(_briefly, others)])
        more, still = len(self.moved) - MOST_NAMED, len(self.tests) - len(self.moved)
        also = f", and in {more} more of the tests" if more > 0 else ""
        rest = f" In the other {still} no movement is proven." if still > 1 else ""
        rest = " In the other no movement is proven." if still == 1 else rest
        return f"The sentinel moved {named}{also}.{rest}"

    def _unmoved(self) -> str:
        known = [(test.drift.interval, test) for test in self.tests if test.drift.interval]
        if not known:
            most = max(test.drift.boots for test in self.tests)
            return f"The sentinel booted {most} times, which proves no movement: that takes {FEWEST_BOOTS} boots."
        widest, test = max(known, key=lambda pair: max(abs(pair[0].low), abs(pair[0].high)))
        tests = f" in any of {len(self.tests)} tests, where it may have been largest" if len(self.tests) > 1 else ""
        return (
            f"No movement of the sentinel is proven{tests}: {change_words(widest)} from the first to the last of "
            f"{test.drift.boots} boots in {test.test}."
        )

    @property
    def calibrated(self) -> bool:
        """Whether the noise of all tests is known from calibrations."""
        return all(test.calibrated for test in self.tests)


def _movement(test: WatchedTest) -> str:
    found = test.drift
    return f"by {change_words(found.interval)} from the first to the last of {found.boots} boots in {test.test}"


def _briefly(test: WatchedTest) -> str:
    return f"by {change_words(test.drift.interval)} in {test.test}"


def read_sentinel(run: Run, tests: Sequence[str]) -> Sentinel | None:
    """Read the drift of a run's sentinel in some tests: two queries, and none for a plan without one.

    None also if no test was measured on two of its boots yet.
    """
    if f"{SENTINEL}:" not in run.plan.text:
        return None
    boot = "measurement__boot"
    rows = (
        Sample.objects.good()
        .primary()
        .filter(measurement__boot__run=run, measurement__test__in=list(tests), value__gt=0)
        .values_list(
            "measurement__test", f"{boot}__variant__name", f"{boot}__variant__position", f"{boot}__sentinel",
            "measurement__started", "measurement__seconds",
        )
        .annotate(values=ArrayAgg("value", order_by="index"))
        .order_by("measurement__started")
    )  # fmt: skip
    watched: dict[str, list[Watched]] = {}
    variants: dict[str, dict[str, Line]] = {}
    called = ""
    for test, name, position, is_sentinel, started, seconds, values in rows:
        measured = Watched(started.timestamp() + seconds / 2, tuple(values))
        if is_sentinel:
            called = name
            watched.setdefault(test, []).append(measured)
        else:
            variants.setdefault(test, {}).setdefault(name, Line(position, [])).boots.append(measured)
    known = noises(run.testbed, watched) if watched else {}
    found = []
    for test in names.in_order(watched):
        noise = known[test][0] if test in known else None
        if drifts := drift(watched[test], noise):
            found.append(WatchedTest(test, watched[test], variants.get(test, {}), drifts, noise is not None))
    return Sentinel(run.pk, called, found) if found else None
