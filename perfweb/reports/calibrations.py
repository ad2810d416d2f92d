# SPDX-License-Identifier: BSD-2-Clause
"""The reliability of measurements on a testbed, from A/A runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfweb.lab.models import Testbed
from perfweb.runs import costs
from perfweb.runs.budget import MOST_PER_BOOT
from perfweb.runs.calibration import newest_of, noise_of
from perfweb.runs.models import Calibration, Run
from perfweb.runs.planfile import MOST_BOOTS
from perfweb.stats.design.allocation import Design, allocate
from perfweb.stats.design.falsealarms import RULES, VERDICT
from perfweb.verdicts import names

BUDGETS = (5, 15, 60)
"""Minutes for which pages show the detectable change."""

SHOWN = 200
"""Max number of calibrations of a test, the newest, in a testbed's history."""


@dataclass(frozen=True)
class Visible:
    """The smallest change in percent that a test of two variants detects in that many minutes, and the design."""

    minutes: int
    change: float | None
    design: Design | None


@dataclass(frozen=True)
class CalibratedTest:
    """The newest calibration of a test."""

    row: Calibration

    @property
    def alarms(self) -> float:
        """The share of false alarms by the rule of verdicts."""
        return float(self.row.alarms[VERDICT]["share"])

    @property
    def visible(self) -> list[Visible]:
        """Return the detectable changes with samples of one second, one of them for warm-up on each boot."""
        noise = noise_of(self.row)

        def seconds(samples: int) -> float:
            return 2 * (self.row.boot_seconds + costs.measuring(samples + 1, 1))

        most, found = Design(MOST_BOOTS, MOST_PER_BOOT), []
        for minutes in BUDGETS:
            design = allocate([noise], 60 * minutes, seconds, self.row.confidence, most)
            change = noise.visible(design.boots, design.samples, self.row.confidence) if design else None
            found.append(Visible(minutes, change, design))
        return found


@dataclass(frozen=True)
class RuleAlarms:
    """The false positives of a rule over all tests, and the median width of its intervals relative to those of
    verdicts.
    """

    rule: str
    decides: bool
    share: float
    width: float


@dataclass(frozen=True)
class Trust:
    """The false positive rate over the newest calibrations of several tests."""

    rows: list[Calibration]

    @property
    def comparisons(self) -> int:
        return sum(row.comparisons for row in self.rows)

    @property
    def disjoint(self) -> int:
        return sum(row.disjoint for row in self.rows)

    @property
    def runs(self) -> list[int]:
        return sorted({row.run_id for row in self.rows})

    @property
    def rules(self) -> list[RuleAlarms]:
        return [RuleAlarms(rule, rule == VERDICT, self._share(rule), self._width(rule)) for rule in RULES]

    @property
    def deciding(self) -> RuleAlarms:
        """The rule of verdicts."""
        return next(rule for rule in self.rules if rule.decides)

    def _share(self, rule: str) -> float:
        alarms = sum(float(row.alarms[rule]["share"]) * row.comparisons for row in self.rows)
        return alarms / self.comparisons

    def _width(self, rule: str) -> float:
        widths = [(float(row.alarms[rule]["width"]), float(row.alarms[VERDICT]["width"])) for row in self.rows]
        ratios = [one / verdicts for one, verdicts in widths if verdicts]
        return sum(ratios) / len(ratios) if ratios else 1.0


def calibrated(testbed: Testbed) -> list[CalibratedTest]:
    """Read the newest calibration of each test on a testbed: one query."""
    rows = {row.test: row for row in newest_of(testbed)}
    return [CalibratedTest(rows[test]) for test in names.in_order(rows)]


def trust(rows: Sequence[Calibration]) -> Trust | None:
    """Return the false positive rates of rules over calibrations, None without any."""
    known = [row for row in rows if set(row.alarms) == set(RULES)]
    return Trust(known) if known else None


def trust_of(run: Run, tests: Sequence[str]) -> Trust | None:
    """Read the false positive rate of these tests on the testbed of a run: one query."""
    return trust(list(newest_of(run.testbed).filter(test__in=tests)))


def noise_over_runs(testbed: Testbed) -> dict[str, dict[int, float]]:
    """Read the scatter of boots in the newest calibrations, in percent by test and run: one query."""
    found: dict[str, dict[int, float]] = {}
    for row in Calibration.objects.filter(run__testbed=testbed).order_by("-pk")[:SHOWN]:
        found.setdefault(row.test, {})[row.run_id] = row.boot_deviation
    return {test: found[test] for test in names.in_order(found)}
