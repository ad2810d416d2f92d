# SPDX-License-Identifier: BSD-2-Clause
"""The report of a run of all tests: numbers, the longest tests, the closing line that CI reads."""

from __future__ import annotations

import os
from pathlib import Path

from tests.gate.results import busy, closing_line, collect, machine_cpu_seconds, minutes, read_junit, table
from tests.gate.scheduler import Job, Outcome

PYTEST = """\
<testsuites><testsuite name="pytest">
<testcase classname="tests.unit.test_a" name="test_fine" time="0.5"/>
<testcase classname="tests.unit.test_a" name="test_wrong" time="61.25"><failure message="no">text</failure></testcase>
<testcase classname="tests.unit.test_a" name="test_unclean" time="1"/>
<testcase classname="tests.unit.test_a" name="test_unclean" time="2"><error message="no"/></testcase>
<testcase classname="tests.unit.test_b" name="test_left_out" time="0"><skipped/></testcase>
</testsuite></testsuites>
"""
MESON = '<testsuites><testsuite name="stack"><testcase name="mbuf" classname="unit" time="3"/></testsuite></testsuites>'


def outcome(tmp_path: Path, name: str, status: int, junit: str | None, seconds: float = 1) -> Outcome:
    path = tmp_path / f"{name}.junit"
    if junit is not None:
        path.write_text(junit)
    return Outcome(Job(name, (), junit=(path,)), status, seconds, 2 * seconds, tmp_path / "log")


def test_each_test_is_counted_once(tmp_path: Path) -> None:
    path = outcome(tmp_path, "unit", 1, PYTEST).job.junit[0]
    cases = {case.name.rpartition("::")[2]: (case.state, case.seconds) for case in read_junit("unit", path)}
    assert cases == {
        "test_fine": ("passed", 0.5),
        "test_wrong": ("failed", 61.25),
        "test_unclean": ("failed", 3),
        "test_left_out": ("skipped", 0),
    }


def test_results_are_kept_and_those_of_an_earlier_run_go(tmp_path: Path) -> None:
    kept = tmp_path / "results"
    kept.mkdir()
    (kept / "old.xml").write_text(PYTEST)
    outcomes = [
        outcome(tmp_path, "unit", 1, PYTEST),
        outcome(tmp_path, "suite", 0, MESON),
        outcome(tmp_path, "lint", 0, None),
    ]
    cases = collect(outcomes, kept)
    assert sorted(path.name for path in kept.iterdir()) == ["suite.xml", "unit.xml"]
    assert len(cases) == 5
    assert closing_line(outcomes, cases) == "2 passed, 2 failed"


def test_a_job_that_fails_without_a_test_counts_as_a_failure(tmp_path: Path) -> None:
    outcomes = [outcome(tmp_path, "suite", 0, MESON), outcome(tmp_path, "unit", 137, None)]
    assert closing_line(outcomes, collect(outcomes, tmp_path / "results")) == "1 passed, 1 failed"


def test_the_table_has_jobs_by_duration_and_the_longest_tests(tmp_path: Path) -> None:
    outcomes = [
        outcome(tmp_path, "suite", 0, MESON, seconds=5),
        outcome(tmp_path, "unit", 1, PYTEST, seconds=75),
        outcome(tmp_path, "lint", 1, None, seconds=1),
    ]
    lines = table(outcomes, collect(outcomes, tmp_path / "results"))
    assert [line.split() for line in lines[1:4]] == [
        ["unit", "1:15", "2:30", "1", "2", "1", "FAILED"],
        ["suite", "0:05", "0:10", "1", "0", "0"],
        ["lint", "0:01", "0:02", "-", "-", "FAILED"],
    ]
    assert lines[5] == "longest tests"
    assert lines[6].split() == ["61.2", "s", "unit", "tests.unit.test_a::test_wrong"]


def test_the_use_of_the_cpus_is_that_of_the_jobs_and_of_what_they_start(tmp_path: Path) -> None:
    outcomes = [outcome(tmp_path, name, 0, None, seconds=30) for name in ("a", "b")]  # 60 s of CPU time each
    assert busy(outcomes, 135, 2, 75) == "CPU time: 2:00 by jobs, 2:15 by the machine (90 % of 2 CPUs)"


def test_idle_time_is_no_cpu_time(tmp_path: Path) -> None:
    stat, ticks = tmp_path / "stat", os.sysconf("SC_CLK_TCK")
    stat.write_text("cpu  " + " ".join(str(ticks * n) for n in (1, 2, 4, 1000, 2000, 8, 16, 4000, 0, 0)) + "\ncpu0 0\n")
    assert machine_cpu_seconds(stat) == 31


def test_durations_are_minutes_and_seconds() -> None:
    assert [minutes(seconds) for seconds in (0.4, 59.6, 3605)] == ["0:00", "1:00", "60:05"]
