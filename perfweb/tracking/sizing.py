# SPDX-License-Identifier: BSD-2-Clause
"""The number of boots of a check: enough to prove the suspected change with a power of 80 %.

With fewer, a small but real change would be refuted, because its interval would include zero. The scatter of boots is
known from the branch's series: their points are means of as many boots as the plan has.
"""

from __future__ import annotations

import math
from datetime import timedelta
from statistics import fmean

import numpy as np

from perfweb.runs.models import Run, RunState
from perfweb.runs.planfile import MOST_BOOTS, read_plan
from perfweb.stats.changepoint import noise
from perfweb.stats.design.power import detectable, fewest
from perfweb.stats.student import DEFAULT_CONFIDENCE
from perfweb.tracking.models import Alert, AlertState, Movement, TrackedBranch
from perfweb.tracking.series import FEWEST, Series, read

FEWEST_BOOTS = 4
"""Min boots of each side, because the bootstrap of a verdict needs some."""
MOST_OF_BUDGET = 0.5
"""Max share of the remaining budget for one check."""


def boots_of_check(alert: Alert, spent: timedelta, times: int = 1) -> int:
    """Boots of each variant that prove the clearest of an alert's movements, within a plan's limits and the budget, of
    which this much testbed time is `spent`; or some `times` as many, if that left it open.
    """
    usual = read_plan(alert.branch.plan).boots
    movements = [movement for movement in alert.movements.all() if movement.confirmed or alert.state == AlertState.NEW]
    series = read(alert.branch).series
    needed = [_needed(movement, series, usual, len(movements)) for movement in movements]
    wanted = max(min(needed, default=FEWEST_BOOTS), usual, FEWEST_BOOTS) * times
    return max(min(wanted, MOST_BOOTS, _affordable(alert.branch, usual, spent)), FEWEST_BOOTS)


def _needed(movement: Movement, series: Series, usual: int, tests: int) -> int:
    """Boots of each side that prove a movement of the estimated size among that many tests (Bonferroni)."""
    found = [points for key, points in series.items() if (key.variant, key.test) == (movement.variant, movement.test)]
    points = max(found, key=lambda points: len(points.values), default=None)
    size = abs(movement.size if movement.confirmed else movement.suspected) / 100
    if points is None or len(points.values) < FEWEST or not size:
        return FEWEST_BOOTS
    deviation = noise(np.asarray(points.values)) / abs(fmean(points.values)) * math.sqrt(usual)
    confidence = 100 - (100 - DEFAULT_CONFIDENCE) / tests
    return fewest(lambda boots: detectable(deviation, boots, boots, confidence) <= size) or MOST_BOOTS


def _affordable(branch: TrackedBranch, usual: int, spent: timedelta) -> int:
    """Boots of each side for a share of the remaining budget, by the duration of the newest run of a commit."""
    run = Run.objects.filter(tracked_commits__branch=branch, state=RunState.DONE).order_by("-number").first()
    if run is None or run.started is None or run.ended is None:
        return MOST_BOOTS
    of_both = 2 * (run.ended - run.started) / usual
    left = MOST_OF_BUDGET * (timedelta(minutes=branch.budget) - spent)
    return max(0, int(left / of_both)) if of_both else MOST_BOOTS
