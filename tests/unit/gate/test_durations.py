# SPDX-License-Identifier: BSD-2-Clause
"""The order of jobs depends on their last durations on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gate import durations, plan
from tests.gate.scheduler import Job, Outcome


def outcome(name: str, cpu_seconds: float, status: int = 0, *, cpus: int = 1, seconds: float = 1.0) -> Outcome:
    return Outcome(Job(name, (), cpus), status, seconds, cpu_seconds, Path("log"))


def test_weights_are_estimates_until_a_job_has_passed(tmp_path: Path) -> None:
    setting = plan.Setting(tmp_path)
    assert {job.name: job.weight for job in plan.all_jobs(setting)} == plan.WEIGHTS
    durations.record([outcome("unit", 7.0), outcome("lab", 8.0, status=1)])
    durations.record([outcome("pages", 9.0)])
    weights = {job.name: job.weight for job in plan.all_jobs(setting)}
    assert weights == plan.WEIGHTS | {"unit": 7.0, "pages": 9.0}


def test_a_job_that_mostly_waits_counts_by_its_time(cache_home: Path) -> None:
    durations.record([outcome("integration", 7.0, cpus=0, seconds=50.0), outcome("unit", 7.0, seconds=50.0)])
    assert durations.recorded() == {"integration": 50.0, "unit": 7.0}


@pytest.mark.parametrize("damaged", ["", "[]", '{"unit": []}', '{"unit": "x"}', "\0"])
def test_a_damaged_file_is_like_none(cache_home: Path, damaged: str) -> None:
    durations.cache()
    (cache_home / "perfweb" / "durations.json").write_text(damaged)
    assert durations.recorded() == {}
    durations.record([outcome("unit", 7.0)])
    assert durations.recorded() == {"unit": 7.0}
