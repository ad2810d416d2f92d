# SPDX-License-Identifier: BSD-2-Clause
"""Runs cases at the same time, each in a process of its own, since a process can have one stack only."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from tests.stack.conformance.cases import Case
from tests.stack.conformance.play import MismatchError, play

WAIT = 300
"""Seconds of real time until a script hangs: virtual hours take less than one, but the machine may be busy."""


@dataclass(frozen=True)
class Result:
    """The result of a script; `error` is what was different."""

    script: str
    family: str
    result: str
    clauses: tuple[str, ...]
    error: str | None


def _child(answer: Connection, library: Path, case: Case, family: str, options: dict[str, Collection[str]]) -> None:
    try:
        play(library, case, family, **options)
        answer.send(None)
    except (MismatchError, ValueError) as error:
        answer.send(str(error))
    except Exception as error:
        answer.send(f"{type(error).__name__}: {error}")
    answer.close()
    os._exit(0)  # threads of the stack and blocked calls end with the process


def _threads(pid: int | None) -> str:
    """The threads of a process that hangs, each with its state, CPU seconds and where it waits (proc(5))."""
    found = []
    for folder in sorted(Path(f"/proc/{pid}/task").glob("*")):
        try:
            name, _, fields = (folder / "stat").read_text(encoding="utf-8").partition("(")[2].rpartition(") ")
            where = (folder / "wchan").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        state, *numbers = fields.split()
        seconds = (int(numbers[10]) + int(numbers[11])) / os.sysconf("SC_CLK_TCK")
        found.append(f"{name} {state} {seconds} s {where}")
    return ", ".join(found)


def run(
    library: Path,
    cases: Sequence[tuple[Case, str]],
    tunables: Collection[str] = (),
    loose: Collection[str] = (),
) -> Iterator[Result]:
    """Run cases with families; yield each result when its process ends."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(cases))
    running: dict[Connection, tuple[ForkProcess, Case, str, float]] = {}
    options = {"tunables": tunables, "loose": loose}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            case, family = waiting.pop()
            receiver, sender = context.Pipe(duplex=False)
            child = context.Process(target=_child, args=(sender, library, case, family, options))
            child.start()
            sender.close()
            running[receiver] = (child, case, family, time.monotonic() + WAIT)
        ready = wait(list(running), timeout=1)
        for receiver, (child, case, family, deadline) in list(running.items()):
            if receiver in ready:
                try:
                    error = receiver.recv()
                except EOFError:
                    child.join()
                    error = f"the stack ended with status {child.exitcode}"
            elif time.monotonic() > deadline:
                error = f"not finished after {WAIT} seconds; its threads: {_threads(child.pid)}"
                child.kill()
            else:
                continue
            child.join()
            receiver.close()
            del running[receiver]
            yield Result(case.name, family, "pass" if error is None else "fail", case.clauses, error)
