# SPDX-License-Identifier: BSD-2-Clause
"""The results of a branch's commits as series, and their change points.

A series is a test on a variant in one environment (the digest of the facts about the hosts). A change of a kernel or a
compiler begins another series, so that levels of different hosts are not compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from perfweb.runs.judging import RULES
from perfweb.runs.models import Run, RunState
from perfweb.runs.planfile import PlanError, read_plan
from perfweb.runs.summaries import summaries_of
from perfweb.stats.changepoint import ChangePoint, change_points, noise
from perfweb.stats.comparison import Direction
from perfweb.tracking.measuring import reference_names
from perfweb.tracking.models import TrackedBranch, TrackedCommit

CERTAIN = 4.0
"""Deviations of a series by which two neighbouring points must differ for a run between them."""

FEWEST = 4
"""Min points for an estimate of a series' noise."""


@dataclass(frozen=True, order=True)
class Key:
    """The key of a series."""

    variant: str
    test: str
    environment: str = ""


@dataclass(frozen=True)
class Points:
    """The points of a series in the order of the branch: positions, the mean of the runs of each commit, and the newest
    of these runs; `reference` has the means of the plan's reference at the same positions, if it has one.
    """

    unit: str
    direction: str
    positions: list[int]
    values: list[float]
    runs: list[int]
    reference: list[float] = field(default_factory=list)

    def better(self, change: float) -> bool:
        """Return whether a rise (or a fall) is an improvement."""
        return (change > 0) == (self.direction == Direction.HIGHER)


Series = Mapping[Key, Points]
_WANTED = ("run_id", "series", "test", "environment", "unit", "direction", "mean", "rules")
"""Fields of a summary for a point."""


@dataclass(frozen=True)
class Results:
    """All results of a branch's commits: series, and a digest of their data."""

    series: Series
    digest: str


def read(branch: TrackedBranch) -> Results:
    """Read the results of a branch's commits: three queries if all runs were judged by the present statistics."""
    links = TrackedCommit.runs.through.objects.filter(
        trackedcommit__branch=branch, trackedcommit__position__isnull=False, run__state=RunState.DONE
    )
    rows = links.order_by("run_id").values_list("run_id", "trackedcommit__position")
    position = {run: place for run, place in rows if place is not None}
    digest = hashlib.sha256(json.dumps([RULES, *position.items()]).encode()).hexdigest()
    return Results(with_references(_series(position), _references(branch.plan)), digest)


def _references(plan: str) -> list[str]:
    """Return the names of a plan's references: none if it cannot be read, as one of a sample."""
    try:
        return reference_names(read_plan(plan))
    except PlanError:
        return []


def _series(position: Mapping[int, int]) -> dict[Key, Points]:
    """Return the series of runs, given with the position of each run's commit."""
    units: dict[Key, tuple[str, str]] = {}
    found: dict[Key, dict[int, dict[int, float]]] = {}
    for number, rows in summaries_of(list(Run.objects.filter(pk__in=position)), *_WANTED).items():
        for row in rows:
            key = Key(row.series.rpartition("/")[2], row.test, row.environment)
            units[key] = row.unit, row.direction
            found.setdefault(key, {}).setdefault(position[number], {})[number] = row.mean
    return {key: _points(*units[key], found[key]) for key in sorted(found)}


def _points(unit: str, direction: str, found: Mapping[int, Mapping[int, float]]) -> Points:
    """Return the points of a series from the means of its runs by position."""
    positions = sorted(found)
    means = [list(found[place].values()) for place in positions]
    return Points(
        unit, direction, positions, [sum(some) / len(some) for some in means], [max(found[p]) for p in positions]
    )


def with_references(series: Series, names: Collection[str]) -> dict[Key, Points]:
    """Return the series of the other variants, with the results of the reference among `names` in the same test.

    Positions at which the reference failed get values between those of the next ones, and a reference with fewer
    than FEWEST results is not used.
    """
    known = {(key.test, key.environment): points for key, points in series.items() if key.variant in names}
    found: dict[Key, Points] = {}
    for key, points in series.items():
        reference = known.get((key.test, key.environment))
        if key.variant in names:
            continue
        if reference and len(reference.values) >= FEWEST:
            between = np.interp(points.positions, reference.positions, reference.values)
            points = replace(points, reference=between.tolist())  # noqa: PLW2901 (the same points)
        found[key] = points
    return found


@dataclass(frozen=True)
class Moved:
    """A change point of a series, by positions: after `since`, most likely at `place`, at `until` or before."""

    key: Key
    since: int
    place: int
    until: int
    before: float
    after: float
    percent: float
    low: float
    high: float
    better: bool


def moved(series: Series) -> list[Moved]:
    """Find the change points of all series with a change in percent."""
    return [
        _moved(key, points, found)
        for key, points in series.items()
        for found in change_points(points.values, points.reference)
        if found.change is not None
    ]


def _moved(key: Key, points: Points, found: ChangePoint) -> Moved:
    change = found.change
    assert change is not None  # noqa: S101 (moved() leaves those out)
    since, place, until = (points.positions[index] for index in (found.first - 1, found.place, found.last))
    return Moved(
        key, since, place, until, found.before, found.after, change.percent, change.low, change.high,
        points.better(change.percent),
    )  # fmt: skip


def differing(series: Series, threshold: float) -> list[tuple[int, int]]:
    """Return pairs of neighbouring positions whose results differ, by more than chance and more than `threshold`
    percent, in the order of certainty.
    """
    found: dict[tuple[int, int], float] = {}
    for points in series.values():
        if len(points.values) < FEWEST:
            continue
        deviation = noise(np.asarray(points.values))
        for places, (a, b) in zip(pairwise(points.positions), pairwise(points.values), strict=True):
            certainty = abs(b - a) / deviation
            if certainty > CERTAIN and abs(b - a) > abs(a) * threshold / 100:
                found[places] = max(certainty, found.get(places, 0.0))
    return sorted(found, key=lambda places: -found[places])


@dataclass(frozen=True)
class Group:
    """Changes that may belong to one commit: after `since`, at `until` or before."""

    since: int
    until: int
    moves: tuple[Moved, ...]


def grouped(moves: Sequence[Moved]) -> list[Group]:
    """Group changes whose ranges have commits in common; the range of a group is their intersection.

    The most certain range, which is the shortest, goes first, so that a change with a wide range does not join two that
    cannot be the same.
    """
    groups: list[Group] = []
    for move in sorted(moves, key=lambda move: (move.until - move.since, move.since)):
        for index, group in enumerate(groups):
            since, until = max(move.since, group.since), min(move.until, group.until)
            if since < until:
                groups[index] = Group(since, until, (*group.moves, move))
                break
        else:
            groups.append(Group(move.since, move.until, (move,)))
    return sorted(groups, key=lambda group: group.since)
