# SPDX-License-Identifier: BSD-2-Clause
"""The control: what it measures, how long it waits, and what it stores."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from tests.stack import control, results
from tests.stack.control import NOTHING, Control, Look, distance

BEST = Look(100.0, 300.0)
FAST, SLOW, FAR = Look(91.0, 400.0), Look(89.0, 300.0), Look(100.0, 430.0)


def test_the_best_look_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds, distances = iter((80.0, 60.0, 75.0)), iter((300.0, 100.0, 250.0))
    monkeypatch.setattr(control, "speed", lambda _cpus: next(speeds))
    monkeypatch.setattr(control, "distance", lambda _first, _last: next(distances))
    looked = Control(0)
    assert [looked.look() for _ in range(3)] == [Look(80.0, 300.0), Look(60.0, 100.0), Look(75.0, 250.0)]
    assert looked.best == Look(80.0, 250.0)  # not 100: slow CPUs may be as near as threads of a core


class Scripted(Control):
    """A control with given checks."""

    def __init__(self, patience: float, looks: list[Look]) -> None:
        super().__init__(patience, BEST)
        self.looks = looks

    def look(self) -> Look:
        return self.looks.pop(0)


def test_it_waits_for_quiet_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PAUSE", 0)
    scripted = Scripted(3600, [SLOW, FAR, FAST, BEST])
    assert scripted.quiet() == FAST
    assert scripted.looks == [BEST]


def test_it_waits_no_longer_than_its_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PAUSE", 0)
    scripted = Scripted(0, [SLOW, BEST])
    assert scripted.quiet() == SLOW
    assert scripted.looks == [BEST]


def test_what_is_measured_comes_with_the_worse_of_the_looks_around_it() -> None:
    scripted = Scripted(3600, [FAST, FAR])
    assert scripted.around(lambda: scripted.looks[:]) == ([FAR], Look(91.0, 430.0))
    scripted = Scripted(3600, [FAST, BEST])
    assert scripted.around(lambda: "measured") == ("measured", FAST)


def test_the_best_is_remembered_until_the_machine_is_booted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "BENCH", tmp_path / "bench")
    assert Control.remembering(0).best == NOTHING
    Control(0, Look(80.0, 300.0)).remember()
    Control(0, Look(60.0, 200.0)).remember()
    Control(0, Look(79.0, 290.0)).remember()
    assert Control.remembering(0).best == Look(80.0, 290.0)
    monkeypatch.setattr(control, "BOOT", "another")
    assert Control.remembering(0).best == NOTHING


def test_an_exchange_takes_time_and_leaves_nothing_behind() -> None:
    cpus = os.sched_getaffinity(0)
    assert 0 < distance(min(cpus), max(cpus)) < math.inf
    assert os.sched_getaffinity(0) == cpus
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert distance(min(cpus), min(cpus)) == 0


def test_a_cpu_that_may_not_be_used_is_an_error() -> None:
    cpus = os.sched_getaffinity(0)
    with pytest.raises(OSError, match="Invalid argument"):
        distance(min(cpus), max(cpus) + 1)
    assert os.sched_getaffinity(0) == cpus


def test_who_does_not_answer_is_infinitely_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "SPINS", 1000)
    monkeypatch.setattr(control, "_answer", lambda _byte: os._exit(0))
    cpus = os.sched_getaffinity(0)
    assert distance(min(cpus), max(cpus)) == math.inf
