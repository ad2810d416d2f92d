# SPDX-License-Identifier: BSD-2-Clause
"""The exit status of `./dev test`, and its message about its budget."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tests.gate.__main__ import budget, report
from tests.gate.scheduler import Job, Outcome


def reported(tmp_path: Path, seconds: float, *, thorough: bool = False, status: int = 0, given: float = 0) -> int:
    """The exit status of a run of one job with that duration, with the given budget or that of pyproject.toml."""
    log = tmp_path / "job.log"
    log.write_text("output of the job\n", encoding="utf-8")
    options = argparse.Namespace(var=tmp_path, thorough=thorough, budget=given or None)
    return report([Outcome(Job("job", ()), status, seconds, seconds, log)], options, 2, seconds, seconds)


@pytest.mark.parametrize("thorough", [False, True])
def test_a_run_within_its_budget_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str], thorough: bool) -> None:
    assert reported(tmp_path, budget(thorough), thorough=thorough) == 0
    assert "over budget" not in capsys.readouterr().out


@pytest.mark.parametrize(("thorough", "status"), [(False, 0), (True, 1)])
def test_a_run_over_its_budget_prints_a_warning_and_the_thorough_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], thorough: bool, status: int
) -> None:
    assert reported(tmp_path, budget(thorough) + 1, thorough=thorough) == status
    assert "over budget: the table shows where the time went" in capsys.readouterr().out
    assert "over budget" in (tmp_path / "results" / "table.txt").read_text(encoding="utf-8")
    assert reported(tmp_path, 10, thorough=thorough, given=5) == status


def test_a_failed_job_fails_the_run_and_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reported(tmp_path, 1, status=3) == 1
    assert "output of the job\n" in capsys.readouterr().out
