# SPDX-License-Identifier: BSD-2-Clause
"""Void samples are repeated, up to a limit, and neither warm-up nor failed samples are void."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from playbooks.module_utils.gates import Taking

CALM, STOLEN, FAILED = "calm", "stolen", "failed"


def output(how: str) -> dict[str, Any]:
    """A sample; a failed one was disturbed, too."""
    return {"rc": int(how == FAILED), "timed_out": False, "gauges": {"steal": 0.0 if how == CALM else 0.5}}


def take(taking: Taking, fates: list[str]) -> list[bool]:
    """Take the wanted samples, disturbed as listed, and calm ones after the list; return whether each is void."""
    voids: list[bool] = []
    while taking.left:
        fate = fates[len(voids)] if len(voids) < len(fates) else CALM
        voids.append(bool(taking.judge(output(fate))))
    return voids


@given(
    fates=st.lists(st.sampled_from([CALM, STOLEN, FAILED]), max_size=40),
    samples=st.integers(1, 10),
    discard=st.integers(0, 3),
    allowed=st.integers(0, 12),
)
def test_as_many_are_taken_again_as_are_void_and_allowed(
    fates: list[str], samples: int, discard: int, allowed: int
) -> None:
    taking = Taking(samples, discard, {"steal": 0.05}, allowed)
    voids = take(taking, fates)
    for number, void in enumerate(voids):
        fate = fates[number] if number < len(fates) else CALM
        assert void == (fate == STOLEN and number >= discard)
    again = len(voids) - discard - samples
    assert again == min(allowed, sum(voids))
    assert taking.failed == (FAILED in fates[: len(voids)])


def test_the_first_sample_is_what_others_are_compared_with() -> None:
    taking = Taking(2, 1, {"clocksource": 0.0}, 0)
    voids = [taking.judge({"rc": 0, "timed_out": False, "gauges": {"clocksource": clock}}) for clock in "aba"]
    assert [bool(void) for void in voids] == [False, True, False]


def test_without_gates_everything_counts() -> None:
    assert take(Taking(2, 0, {}, 2), [STOLEN, STOLEN]) == [False, False]
