# SPDX-License-Identifier: BSD-2-Clause
"""Runs jobs in parallel on a fixed number of CPU slots.

A job is a sequence of commands with one log. It takes `cpus` slots, or none if it mostly waits; such light jobs have a
separate limit. The job with the longest chain of dependent jobs starts first (list scheduling by critical path), as
soon as its dependencies have ended and its slots are free; equal ones start in the given order. A failed job stops no
other: a run reports all failures. A job that hangs is ended, so that its output shows where it was.

Each job has a keeper (keeper.py), which leads its own process group, so Ctrl-C in a terminal reaches the scheduler
alone. It signals the keepers and waits until they have ended everything that belongs to their jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

Argv = tuple[str, ...]
KEEPER = (sys.executable, "-S", "-m", "tests.gate.keeper")
INTERRUPTED = 130
LAST_LINES = 30
"""Lines of its log that are printed as soon as a job has failed."""
GRACE_SECONDS = 60.0
"""Seconds in which an interrupted command can clean up before it is killed: a worker in a run restores its lab
first.
"""


@dataclass(frozen=True)
class Job:
    """Commands that run one after the other until one fails.

    `weight` is the approximate number of seconds; only the order of jobs depends on it. `cleanup` runs at the end
    in any case. `after` names jobs that must have ended before, passed or not; names of jobs that are not part of the
    run are ignored. `junit` are files in which the commands write their results.
    """

    name: str
    steps: tuple[Argv, ...]
    cpus: int = 1
    after: tuple[str, ...] = ()
    cleanup: tuple[Argv, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    junit: tuple[Path, ...] = ()
    weight: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """The result of a job: the exit status of its first failed command, or 0.

    `seconds` pass from start to end; `cpu_seconds` are those of its commands, which other load hardly changes.
    """

    job: Job
    status: int
    seconds: float
    cpu_seconds: float
    log: Path

    @property
    def passed(self) -> bool:
        return self.status == 0


Progress = Callable[[str], None]


def _wait_for(keeper: int) -> tuple[int, float]:
    """Waits for a child: its exit status as a shell reports it, and the CPU seconds of it and its descendants."""
    _, status, used = os.wait4(keeper, 0)
    code = os.waitstatus_to_exitcode(status)
    return (code if code >= 0 else 128 - code), used.ru_utime + used.ru_stime


def longest_chain_first(jobs: Sequence[Job]) -> list[Job]:
    """The jobs by the weight of the heaviest chain that begins with each. Raises ValueError for a cycle."""
    followers = {job.name: [other for other in jobs if job.name in other.after] for job in jobs}
    chains: dict[str, float] = {}
    left = list(jobs)
    while left:
        ready = [job for job in left if all(other.name in chains for other in followers[job.name])]
        if not ready:
            raise ValueError(f"jobs that wait for each other: {', '.join(job.name for job in left)}")
        for job in ready:
            chains[job.name] = job.weight + max((chains[other.name] for other in followers[job.name]), default=0.0)
        left = [job for job in left if job.name not in chains]
    return sorted(jobs, key=lambda job: -chains[job.name])


def _last_lines(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:])


class Scheduler:
    """`slots` CPU slots, `light` jobs without a slot at once, and a directory of logs, one for each job.

    A job that has not ended after `limit` seconds is ended and has failed.
    """

    def __init__(
        self,
        slots: int,
        light: int,
        logs: Path,
        progress: Progress = print,
        *,
        grace: float = GRACE_SECONDS,
        limit: float | None = None,
    ) -> None:
        self.slots, self.light, self.logs, self.progress = slots, light, logs, progress
        self.grace, self.limit = grace, limit

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Runs all jobs; the outcomes in the order in which the jobs ended.

        When it is cancelled, it returns only after every job has been ended and cleaned up.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        # Each job that runs has a thread that waits for its command; asyncio's own pool has a few only.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(self.slots + self.light))
        waiting = longest_chain_first(jobs)
        running: dict[asyncio.Task[Outcome], Job] = {}
        outcomes: list[Outcome] = []
        try:
            while waiting or running:
                while job := self._next(waiting, list(running.values())):
                    waiting.remove(job)
                    self.progress(f"{job.name}: started")
                    running[asyncio.create_task(self._perform(job))] = job
                ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    del running[task]
                    outcomes.append(task.result())
                    self._report(task.result(), list(running.values()), len(waiting))
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        return outcomes

    def _next(self, waiting: Sequence[Job], running: Sequence[Job]) -> Job | None:
        """The first job that may start now. A job that needs more slots than there are gets all of them."""
        unfinished = {job.name for job in (*waiting, *running)}
        free = self.slots - sum(min(job.cpus, self.slots) for job in running)
        free_light = self.light - sum(job.cpus == 0 for job in running)
        for job in waiting:
            fits = free_light > 0 if job.cpus == 0 else min(job.cpus, self.slots) <= free
            if fits and unfinished.isdisjoint(job.after):
                return job
        return None

    def _report(self, outcome: Outcome, running: Sequence[Job], waiting: int) -> None:
        state = "passed" if outcome.passed else f"FAILED with status {outcome.status}"
        beside = f"; running: {', '.join(job.name for job in running)}" if running else ""
        self.progress(f"{outcome.job.name}: {state} in {outcome.seconds:.0f} s{beside}; {waiting} waiting")
        if not outcome.passed:
            self.progress(f"{outcome.job.name}: end of its output\n{_last_lines(outcome.log)}")

    async def _perform(self, job: Job) -> Outcome:
        begin = time.monotonic()
        log = self.logs / f"{job.name}.log"
        keeper = self._start(job, log)
        ended = asyncio.create_task(asyncio.to_thread(_wait_for, keeper.pid))
        try:
            status, used = await asyncio.shield(ended)
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(keeper.pid, signal.SIGINT)
            # A second interrupt must not stop the clean-up after the first.
            while not ended.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(ended)
            raise
        return Outcome(job, status, time.monotonic() - begin, used, log)

    def _start(self, job: Job, log: Path) -> subprocess.Popen[bytes]:
        """Starts the keeper of a job."""
        words = {"steps": job.steps, "cleanup": job.cleanup, "grace": self.grace, "limit": self.limit}
        with log.open("wb") as output, tempfile.TemporaryFile() as order:
            order.write(json.dumps({**words, "parent": os.getpid()}).encode())
            order.seek(0)
            keeper = subprocess.Popen(
                KEEPER, env={**os.environ, **job.environment}, process_group=0,
                stdin=order, stdout=output, stderr=output,
            )  # fmt: skip
        keeper.returncode = 0  # a thread reaps it
        return keeper


def run_jobs(scheduler: Scheduler, jobs: Sequence[Job]) -> list[Outcome]:
    """Runs jobs from synchronous code; SIGINT, SIGTERM and SIGHUP end them and raise KeyboardInterrupt.

    Further signals are ignored while the jobs clean up.
    """

    async def supervise() -> list[Outcome]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

        def interrupt() -> None:
            for number in numbers:
                loop.add_signal_handler(number, lambda: None)
            task.cancel()

        for number in numbers:
            loop.add_signal_handler(number, interrupt)
        return await scheduler.run(jobs)

    try:
        return asyncio.run(supervise())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
