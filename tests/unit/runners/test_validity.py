# SPDX-License-Identifier: BSD-2-Clause
"""Void samples are taken again, and whatever was taken is kept once and in order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perfweb.runs.catalogue import TESTS
from runners.planner import PlannedMeasurement
from runners.validity import Taken

TEST = TESTS["tcp.rr/host-host/ipv4"]
CALM, STOLEN, FAILED = "calm", "stolen", "failed"


def output(number: int, how: str) -> dict[str, Any]:
    """The sample of a number; one that failed was disturbed, too."""
    gauges = {"seconds": 1.0, "steal": 0.0 if how == CALM else 0.5}
    return {"number": number, "rc": int(how == FAILED), "timed_out": False, "gauges": gauges}


def take(taken: Taken, fates: list[str]) -> list[int]:
    """Takes what is wanted, as fate has it, and calm ones when fate is used up; returns how many at once."""
    counts, number = [], 0
    while count := taken.wanted():
        counts.append(count)
        taken.add([output(n, fates[n] if n < len(fates) else CALM) for n in range(number, number + count)])
        number += count
    return counts


@given(
    fates=st.lists(st.sampled_from([CALM, STOLEN, FAILED]), max_size=40),
    samples=st.integers(1, 10),
    discard=st.integers(0, 3),
    allowed=st.integers(0, 12),
)
def test_nothing_is_lost_or_counted_twice_and_the_order_is_kept(
    fates: list[str], samples: int, discard: int, allowed: int
) -> None:
    taken = Taken(PlannedMeasurement(TEST, samples, discard), {"steal": 0.05}, allowed)
    counts = take(taken, fates)
    assert [made["number"] for made in taken.outputs] == list(range(sum(counts)))
    assert sum(counts) <= discard + samples + allowed
    voids = taken.voids()
    assert len(voids) == len(taken.outputs)
    for number, void in enumerate(voids):
        fate = fates[number] if number < len(fates) else CALM
        assert bool(void) == (fate == STOLEN and number >= discard)
    valid = sum(not void for void in voids[discard:])
    again = len(voids) - discard - samples
    assert valid == samples or again == allowed
    assert valid <= samples


def test_void_samples_are_taken_again_at_the_end_and_so_are_those_that_become_void_then() -> None:
    taken = Taken(PlannedMeasurement(TEST, 3, 1), {"steal": 0.05}, 3)
    assert take(taken, [STOLEN, CALM, STOLEN, STOLEN, STOLEN]) == [4, 2, 1]
    assert [bool(void) for void in taken.voids()] == [False, False, True, True, True, False, False]


def test_without_gates_everything_counts() -> None:
    taken = Taken(PlannedMeasurement(TEST, 2, 0), {}, 2)
    assert take(taken, [STOLEN, STOLEN]) == [2]
    assert taken.voids() == ["", ""]


def test_a_host_that_hands_back_less_than_was_wanted_is_not_asked_for_ever() -> None:
    taken = Taken(PlannedMeasurement(TEST, 2, 0), {"steal": 0.05}, 5)
    taken.add([])
    assert taken.wanted() == 0
