# SPDX-License-Identifier: BSD-2-Clause
"""The speed of all CPUs at once: its measurement leaves no trace, and the best one is kept."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import pytest

from playbooks.module_utils import cpuspeed
from playbooks.module_utils.cpuspeed import Slowdown, speed


def test_a_look_leaves_the_program_on_all_its_cpus() -> None:
    before = os.sched_getaffinity(0)
    assert speed(before) > 0
    assert os.sched_getaffinity(0) == before


def test_each_cpu_has_its_work_and_the_slowest_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpuspeed, "_work", lambda cpu: {3: 90.0, 5: 70.0, 8: 80.0}[cpu])
    assert speed([3, 5, 8]) == 70.0


def test_a_cpu_that_this_process_may_not_use_is_an_error_and_no_hang() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        speed([*os.sched_getaffinity(0), 1023])


def test_what_is_lost_is_lost_of_the_best_speed_that_any_process_has_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speeds = [80.0, 60.0, 100.0, 50.0]

    def scripted(cpus: Collection[int]) -> float:
        assert cpus == [0, 1]
        return speeds.pop(0)

    monkeypatch.setattr(cpuspeed, "speed", scripted)
    first = Slowdown(tmp_path / "best")
    assert [first.look([0, 1]) for _ in range(3)] == [0.0, 0.25, 0.0]
    assert Slowdown(tmp_path / "best").look([0, 1]) == 0.5


def test_a_best_speed_that_a_crash_has_emptied_is_found_anew(tmp_path: Path) -> None:
    (tmp_path / "best").touch()
    assert Slowdown(tmp_path / "best").look(os.sched_getaffinity(0)) == 0.0
    assert float((tmp_path / "best").read_text(encoding="ascii")) > 0
