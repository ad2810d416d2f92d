# SPDX-License-Identifier: BSD-2-Clause
"""The control works on all CPUs and leaves no trace; what it waits for, and for how long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.stack import control, results
from tests.stack.control import Control


def test_a_look_leaves_the_program_on_all_its_cpus() -> None:
    before = os.sched_getaffinity(0)
    looked = Control(0)
    speeds = [looked.speed() for _ in range(2)]
    assert min(speeds) > 0
    assert looked.best == max(speeds)
    assert os.sched_getaffinity(0) == before


def test_each_cpu_has_its_work_and_the_slowest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    work = {cpu: 100.0 - cpu for cpu in os.sched_getaffinity(0)}
    monkeypatch.setattr(control, "_work", lambda cpu, _: work[cpu])
    looked = Control(0)
    assert looked.speed() == min(work.values())


class Scripted(Control):
    """One whose looks are known."""

    def __init__(self, patience: float, speeds: list[float]) -> None:
        super().__init__(patience)
        self.best, self.speeds = 100.0, speeds

    def speed(self) -> float:
        return self.speeds.pop(0)


def test_it_waits_for_quiet_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PAUSE", 0)
    scripted = Scripted(3600, [60.0, 89.0, 91.0, 50.0])
    assert scripted.quiet() == 91.0
    assert scripted.speeds == [50.0]


def test_it_waits_no_longer_than_its_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PAUSE", 0)
    scripted = Scripted(0, [60.0, 100.0])
    assert scripted.quiet() == 60.0
    assert scripted.speeds == [100.0]


def test_what_is_measured_comes_with_the_slower_look_around_it() -> None:
    scripted = Scripted(3600, [91.0, 70.0])
    assert scripted.around(lambda: scripted.speeds[:]) == ([70.0], 70.0)
    scripted = Scripted(3600, [91.0, 99.0])
    assert scripted.around(lambda: "measured") == ("measured", 91.0)


def test_the_best_speed_is_remembered_until_the_machine_is_booted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "BENCH", tmp_path / "bench")
    assert Control.remembering(0).best == 0.0
    Control(0, 80.0).remember()
    Control(0, 60.0).remember()
    assert Control.remembering(0).best == 80.0
    monkeypatch.setattr(control, "BOOT", "another")
    assert Control.remembering(0).best == 0.0
