# SPDX-License-Identifier: BSD-2-Clause
"""Runs a bench with the services that it needs: `python -m tests.bench NAME [ARGUMENTS ...]`, or `./dev bench NAME`.

A bench that needs the lab runs beside an installation that is up, which `./dev bench` starts.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from playbooks.module_utils import processes
from runners import interruptible
from tests.installation import ROOT, installed

Arguments = Callable[[Path, list[str]], list[str]]
"""The arguments of a module, from PERFWEB_VAR and the arguments of the command."""


class Needs(StrEnum):
    NOTHING = "nothing"
    SERVICES = "services"
    LAB = "lab"


@dataclass(frozen=True)
class Bench:
    """A module with a command line; `directory`, below PERFWEB_VAR, is that of its private services."""

    module: str
    usage: str = ""
    needs: Needs = Needs.NOTHING
    directory: str = ""
    arguments: Arguments = lambda _, words: words


def _pid(var: Path, service: str) -> str:
    found = processes.running(var / "run" / f"{service}.pid")
    if found is None:
        sys.exit(f"bench: no {service} runs below {var}: start it with ./dev bench")
    return str(found.pid)


def _site(var: Path) -> str:
    return (var / "run" / "url").read_text(encoding="ascii").strip()


def _record(var: Path, words: list[str]) -> list[str]:
    subprocess.run(interruptible.command("manage", "demo", "--plan", "a-a-b"), cwd=ROOT, check=True)
    return ["--site", _site(var), *(words or [str(var / "a-a-b.csv")])]


def _service(var: Path, words: list[str]) -> list[str]:
    return ["--site", _site(var), "--web-pid", _pid(var, "web"), "--plans", str(var / "plans.txt"), *words]


def _misses(_: Path, words: list[str]) -> list[str]:
    if shutil.which("valgrind") is None:
        sys.exit("bench: misses simulates caches with valgrind: apt-get install valgrind")
    return words


BENCHES = {
    "stack": Bench("tests.stack.bench", "[--quick] [--resume] [--write] [ROW ...]"),
    "soak": Bench("tests.stack.soak", "[--seconds 600] [LEG ...]"),
    "knobs": Bench("tests.stack.knobs", "[--quick] [--signs] [--resume] [--write] [KNOB ...]"),
    "misses": Bench("tests.stack.misses", arguments=_misses),
    "path": Bench("tests.stack.path", "[KNOB=VALUE ...]"),
    "sim": Bench("tests.stack.sim", "[--quick] [--write] [KNOB ...]"),
    "races": Bench("tests.stack.races", "[--write]"),
    "stats": Bench("tests.bench.stats", "[SAMPLES.csv ...]"),
    "record": Bench("tests.bench.record", "[SAMPLES.csv]", Needs.LAB, arguments=_record),
    "service": Bench("tests.bench.service", "[--commits 2000]", Needs.SERVICES, "bench", _service),
    "connections": Bench(
        "tests.bench.connections", "[--idle 2000] [--viewers 1000] [--pages 200]",
        arguments=lambda var, words: ["--var", str(var / "connections"), *words],
    ),
    "lab": Bench(
        "tests.bench.lab", "[--target linux|stack] [--boots 5] [--samples 10] [--runs 10] [--aa MINUTES]", Needs.LAB,
        arguments=lambda var, words: ["--worker", _pid(var, "worker"), *words],
    ),
    "branch": Bench(
        "tests.bench.branch", "[--commits 60] [--every 3]", Needs.LAB,
        arguments=lambda var, words: ["--var", str(var), *words],
    ),
    "noise": Bench("tests.bench.noise", "[--branches 20] [--minutes 10] [--write]", Needs.SERVICES, "noise"),
    "samples": Bench("tests.bench.samples", needs=Needs.SERVICES, directory="samples"),
    "tracking": Bench("tests.bench.tracking", "[--series 40] [--noise] [--quick] [--write]"),
}  # fmt: skip


@contextmanager
def _services(var: Path) -> Iterator[None]:
    """Databases and a web server below a directory that one command at a time uses; its data is kept."""
    var.mkdir(parents=True, exist_ok=True)
    with (var / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"bench: another command works in {var}: wait for it, or stop it with Ctrl-C")
        with installed(var) as installation:
            os.environ.update(installation.environment)
            yield


def run(bench: Bench, var: Path, words: list[str]) -> None:
    """Run a bench like a separate command, but in this process."""
    directory = var / bench.directory
    with _services(directory) if bench.needs == Needs.SERVICES else nullcontext():
        sys.argv = [bench.module, *bench.arguments(directory, words)]
        runpy.run_module(bench.module, run_name="__main__", alter_sys=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see the top of this file."""
    listed = "\n".join(f"  {name} {bench.usage}".rstrip() for name, bench in BENCHES.items())
    parser = argparse.ArgumentParser(
        prog="./dev bench", usage=f"./dev bench NAME [ARGUMENTS ...]\n{listed}", allow_abbrev=False
    )
    parser.add_argument("--var", type=Path, default=ROOT / "var", help=argparse.SUPPRESS)
    parser.add_argument("--needs", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("name", nargs="?", choices=BENCHES, metavar="NAME")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="ARGUMENTS")
    options = parser.parse_args(arguments)
    if options.name is None:
        parser.error("name a bench")
    bench = BENCHES[options.name]
    if options.needs:
        print(bench.needs)
    else:
        run(bench, options.var, options.words)


if __name__ == "__main__":
    main()
