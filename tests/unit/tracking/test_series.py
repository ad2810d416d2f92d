# SPDX-License-Identifier: BSD-2-Clause
"""Changes in series, and their groups."""

import random

from perfweb.runs.models import Direction
from perfweb.tracking.series import Key, Moved, Points, differing, grouped, moved, with_references


def points(values: list[float], direction: str = Direction.HIGHER, every: int = 1) -> Points:
    positions = [1 + every * index for index in range(len(values))]
    return Points("transactions/s", direction, positions, values, positions)


def step(at: int, percent: float, count: int = 20) -> list[float]:
    rng = random.Random(1)
    return [rng.gauss(100.0, 0.2) * (1 + percent / 100 * (index >= at)) for index in range(count)]


def move(since: int, until: int, test: str = "t") -> Moved:
    return Moved(Key("v", test), since, until, until, 100.0, 97.0, -3.0, -4.0, -2.0, better=False)


def test_a_step_is_reported_with_the_commits_around_it() -> None:
    [found] = moved({Key("v", "t"): points(step(8, -3), every=2)})
    assert (found.since, found.place, found.until) == (15, 17, 17)
    assert found.low < -3 < found.high < 0
    assert not found.better


def test_what_is_better_depends_on_the_direction() -> None:
    [rate] = moved({Key("v", "t"): points(step(8, 3))})
    [cost] = moved({Key("v", "t"): points(step(8, 3), Direction.LOWER)})
    assert (rate.better, cost.better) == (True, False)


def test_environments_are_series_of_their_own() -> None:
    values = step(10, -5)
    series = {Key("v", "t", "old"): points(values[:10]), Key("v", "t", "new"): points(values[10:])}
    assert moved(series) == []


def test_a_step_that_the_reference_has_too_is_the_machines() -> None:
    measured = {Key("v", "t"): points(step(10, -5, 30)), Key("fixed", "t"): points(step(10, -5, 30))}
    assert with_references(measured, []) == measured
    assert {found.key.variant for found in moved(measured)} == {"fixed", "v"}
    assert moved(with_references(measured, ["fixed"])) == []


def test_a_step_that_the_reference_does_not_have_stays() -> None:
    other = points([100 + random.Random(2).gauss(0, 0.2) for _ in range(20)])
    [found] = moved(with_references({Key("v", "t"): points(step(8, -3)), Key("fixed", "t"): other}, ["fixed"]))
    assert (found.key, found.place) == (Key("v", "t"), 9)


def test_positions_without_a_reference_get_what_is_between_the_next_ones() -> None:
    few = Points("transactions/s", Direction.HIGHER, [1, 3, 4, 6], [10.0, 12.0, 13.0, 15.0], [1, 3, 4, 6])
    series = with_references({Key("v", "t"): points([1.0] * 6), Key("fixed", "t"): few}, ["fixed"])
    assert series[Key("v", "t")].reference == [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
    short = Points("transactions/s", Direction.HIGHER, [1, 2, 3], [10.0] * 3, [1, 2, 3])
    assert with_references({Key("v", "t"): points([1.0] * 6), Key("fixed", "t"): short}, ["fixed"]) == {
        Key("v", "t"): points([1.0] * 6)
    }


def test_neighbours_that_differ_are_the_most_certain_first() -> None:
    series = {Key("v", "a"): points(step(5, -2)), Key("v", "b"): points(step(12, 6))}
    assert differing(series, 0.5) == [(12, 13), (5, 6)]
    assert differing(series, 4.0) == [(12, 13)]
    assert differing({Key("v", "a"): points(step(0, 0))}, 0.0) == []


def test_changes_with_a_commit_in_common_are_one_group() -> None:
    [group] = grouped([move(4, 9), move(6, 7, "u"), move(5, 8, "w")])
    assert (group.since, group.until, len(group.moves)) == (6, 7, 3)


def test_changes_at_neighbouring_commits_are_two() -> None:
    groups = grouped([move(4, 5), move(5, 6, "u")])
    assert [(group.since, group.until) for group in groups] == [(4, 5), (5, 6)]


def test_one_change_that_may_be_anywhere_does_not_join_two() -> None:
    groups = grouped([move(2, 12, "w"), move(4, 5), move(9, 10, "u")])
    assert [(group.since, group.until) for group in groups] == [(4, 5), (9, 10)]
    assert sorted(len(group.moves) for group in groups) == [1, 2]
