# SPDX-License-Identifier: BSD-2-Clause
"""What the control waits for, for how long, and what it remembers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stack import control, results
from tests.stack.control import Control


def test_the_best_look_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = iter((80.0, 60.0))
    monkeypatch.setattr(control, "speed", lambda _cpus: next(speeds))
    looked = Control(0)
    assert [looked.speed(), looked.speed()] == [80.0, 60.0]
    assert looked.best == 80.0


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
