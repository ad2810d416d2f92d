# SPDX-License-Identifier: BSD-2-Clause
"""Reads the results of a run, which pytest and meson write as JUnit XML, and summarises them in a table."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.gate.scheduler import Outcome

LONGEST = 10
FAILURES = ("failure", "error")


@dataclass(frozen=True)
class TestCase:
    """A test: the job that ran it, its name, seconds, and `passed`, `failed` or `skipped`."""

    job: str
    name: str
    seconds: float
    state: str


def read_junit(job: str, path: Path) -> list[TestCase]:
    """The tests of a file; none if the job ended before it was written.

    pytest writes a second element for a test whose clean-up failed: the test is counted once, as failed.
    """
    if not path.exists():
        return []
    cases: dict[str, TestCase] = {}
    for element in ElementTree.parse(path).iter("testcase"):  # noqa: S314  # our own file
        name = f"{element.get('classname', '')}::{element.get('name', '')}".removeprefix("::")
        state = "passed"
        if any(element.find(tag) is not None for tag in FAILURES):
            state = "failed"
        elif element.find("skipped") is not None:
            state = "skipped"
        before = cases.get(name)
        seconds = float(element.get("time") or 0) + (before.seconds if before else 0)
        if before is not None and before.state == "failed":
            state = "failed"
        cases[name] = TestCase(job, name, seconds, state)
    return list(cases.values())


def collect(outcomes: Sequence[Outcome], directory: Path) -> list[TestCase]:
    """All tests of a run. The files are kept in `directory`, named by their jobs; those of earlier runs are deleted."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    cases = []
    for outcome in outcomes:
        for number, path in enumerate(outcome.job.junit):
            if path.exists():
                suffix = f"-{number}" if number else ""
                shutil.copyfile(path, directory / f"{outcome.job.name}{suffix}.xml")
            cases += read_junit(outcome.job.name, path)
    return cases


def minutes(seconds: float) -> str:
    """`75` is 1:15."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02}"


def table(outcomes: Sequence[Outcome], cases: Sequence[TestCase]) -> list[str]:
    """The jobs by duration with their numbers of tests, and the longest tests."""
    lines = [f"{'job':<24}{'time':>8}{'CPU':>8}{'passed':>8}{'failed':>8}{'skipped':>9}"]
    for outcome in sorted(outcomes, key=lambda each: -each.seconds):
        counts = Counter(case.state for case in cases if case.job == outcome.job.name)
        numbers = f"{counts['passed']:>8}{counts['failed']:>8}{counts['skipped']:>9}" if counts else f"{'-':>8}" * 2
        mark = "" if outcome.passed else "  FAILED"
        lines.append(
            f"{outcome.job.name:<24}{minutes(outcome.seconds):>8}{minutes(outcome.cpu_seconds):>8}{numbers}{mark}"
        )
    longest = sorted(cases, key=lambda case: -case.seconds)[:LONGEST]
    if longest:
        lines += ["", "longest tests"]
        lines += [f"{case.seconds:>8.1f} s  {case.job}  {case.name}" for case in longest]
    return lines


def machine_cpu_seconds(stat: Path = Path("/proc/stat")) -> float:
    """CPU seconds that all processes of the machine have used since its boot (proc_stat(5))."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, stat.read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def busy(outcomes: Sequence[Outcome], machine: float, cpus: int, seconds: float) -> str:
    """CPU time of the jobs' own processes, and of the whole machine with the servers and guests that they start."""
    used = sum(outcome.cpu_seconds for outcome in outcomes)
    share = 100 * machine / (cpus * seconds)
    return f"CPU time: {minutes(used)} by jobs, {minutes(machine)} by the machine ({share:.0f} % of {cpus} CPUs)"


def closing_line(outcomes: Sequence[Outcome], cases: Sequence[TestCase]) -> str:
    """`3 passed, 0 failed`: all tests. A job that failed without a failed test, such as a linter, counts as one."""
    failed = sum(case.state == "failed" for case in cases)
    blamed = {case.job for case in cases if case.state == "failed"}
    failed += sum(not outcome.passed and outcome.job.name not in blamed for outcome in outcomes)
    passed = sum(case.state == "passed" for case in cases)
    return f"{passed} passed, {failed} failed"
