# SPDX-License-Identifier: BSD-2-Clause
"""Runs the project's tests and linters: `./dev test`, and `./dev lint`.

    python -m tests.gate --var DIR                  the gate: everything that has to pass before a change lands
    python -m tests.gate --var DIR --thorough       also the long tests; fails if it exceeds its budget
    python -m tests.gate --var DIR --changed        the jobs that the changes since the main branch affect
    python -m tests.gate --var DIR --job JOB ...    jobs by name; `lint` are all linters
    python -m tests.gate --list                     the names of all jobs

A job's output goes to DIR/log/JOB.log; of a job that failed, the last lines are printed at once, and all of it at the
end. The results of pytest and meson are in DIR/results as JUnit XML.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tomllib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tests.gate import durations, plan, results
from tests.gate.scheduler import INTERRUPTED, Job, Outcome, Scheduler, run_jobs

LIGHT_JOBS = 3
"""Max number of jobs that mostly wait at the same time: with five, responses took seconds."""

JOB_SECONDS = {False: 4200.0, True: 7200.0}
"""Seconds after which a job counts as hanging, by whether the run is thorough: about twice those of the longest job."""


def budget(thorough: bool) -> float:
    """Max seconds of a run."""
    with (plan.ROOT / "pyproject.toml").open("rb") as file:
        budgets = tomllib.load(file)["tool"]["perfweb"]["tests"]
    return float(budgets["thorough_seconds" if thorough else "gate_seconds"])


def selected(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Job]:
    """Return the jobs that the command line selects."""
    setting = plan.Setting(options.var.absolute(), options.thorough)
    everything = plan.all_jobs(setting)
    if not options.changed and not options.jobs:
        return everything
    names = {job.name for job in everything}
    if options.changed:
        changed = plan.changed_files()
        chosen = plan.names_for(changed, sorted(names))
        print(f"{len(changed)} changed files need: {' '.join(sorted(chosen)) or 'nothing'}")
    else:
        chosen = {name for name in options.jobs if name != "lint"}
        if "lint" in options.jobs:
            chosen |= {name for name in names if name.startswith("lint-")}
    available = [*everything, *plan.partial_jobs(setting)]
    unknown = chosen - {job.name for job in available}
    if unknown:
        parser.error(f"unknown job {min(unknown)!r}: choose from {', '.join(job.name for job in available)}")
    return [job for job in available if job.name in chosen]


def progress(line: str) -> None:
    """Prints a line at once, with the time of day."""
    print(f"{datetime.now().astimezone():%H:%M:%S} {line}", flush=True)


def report(outcomes: Sequence[Outcome], options: argparse.Namespace, cpus: int, seconds: float, machine: float) -> int:
    """Prints the logs of failed jobs, the table, and pytest's closing line; the exit status of the run."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    for outcome in failed:
        print(f"\n===== {outcome.job.name}: output of the failed job ({outcome.log})")
        print(outcome.log.read_text(encoding="utf-8", errors="replace"))
    cases = results.collect(outcomes, options.var / "results")
    if not options.thorough:
        durations.record(outcomes)
    lines = results.table(outcomes, cases)
    limit = options.budget or budget(options.thorough)
    exceeded = seconds > limit
    lines += ["", f"whole run {results.minutes(seconds)}, budget {results.minutes(limit)}"]
    lines.append(results.busy(outcomes, machine, cpus, seconds))
    if exceeded:
        lines.append("over budget: the table shows where the time went; pyproject.toml, [tool.perfweb.tests]")
    (options.var / "results" / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n" + "\n".join(lines))
    if failed:
        print(f"failed: {', '.join(outcome.job.name for outcome in failed)}")
    print(results.closing_line(outcomes, cases), flush=True)
    return 1 if failed or (exceeded and options.thorough) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="./dev test", description="Run the tests and linters.")
    parser.add_argument("--var", type=Path, default=plan.ROOT / "var" / "test", help="directory of data and results")
    parser.add_argument("--thorough", action="store_true", help="also what takes longer")
    parser.add_argument("--changed", action="store_true", help="only what changes since the main branch ask for")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="instead of that in pyproject.toml")
    parser.add_argument("--list", action="store_true", help="print the names of all jobs")
    parser.add_argument("--job", dest="jobs", nargs="+", default=[], metavar="JOB", help="by name; lint: all linters")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(job.name for job in plan.all_jobs(plan.Setting(options.var.absolute()))))
        return 0
    begin, used = time.monotonic(), results.machine_cpu_seconds()
    scheduler = Scheduler(
        os.cpu_count() or 1, LIGHT_JOBS, options.var / "log", progress, limit=JOB_SECONDS[options.thorough]
    )
    try:
        outcomes = run_jobs(scheduler, selected(options, parser))
    except KeyboardInterrupt:
        return INTERRUPTED
    seconds, machine = time.monotonic() - begin, results.machine_cpu_seconds() - used
    return report(outcomes, options, scheduler.slots, seconds, machine)


if __name__ == "__main__":
    sys.exit(main())
