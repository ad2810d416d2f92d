# SPDX-License-Identifier: BSD-2-Clause
"""The builds of the stack whose own tests run in `./dev test`, and those that only have to compile with clang.

    python -m tests.stack.builds make NAME      configure and compile build/NAME and its tests
    python -m tests.stack.builds test NAME      run its tests; the results are in build/NAME/meson-logs

ccache finds compilations of other clones on this machine (`./dev` chooses its directory). A directory that was
configured otherwise is made anew.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MESON = str(ROOT / ".venv" / "bin" / "meson")
CHECKED = ("-Dbuildtype=debugoptimized", "-Dinvariants=true", "-Dwitness=true", "-Dlock_profiling=true")
"""Options of builds that check themselves."""
CLANG = "ccache clang-14"  # meson puts ccache before a compiler only if CC does not name one


@dataclass(frozen=True)
class Build:
    """Options of meson, and the compiler unless it is the default one, gcc."""

    options: tuple[str, ...]
    compiler: str = ""


BUILDS = {
    "release": Build(("-Dbuildtype=release", "-Dlayouts=2")),
    "address": Build((*CHECKED, "-Db_sanitize=address,undefined")),
    "thread": Build((*CHECKED, "-Db_sanitize=thread")),
    # clang checks the lock annotations, which gcc does not know.
    "clang": Build((*CHECKED, "-Dwerror=true"), CLANG),
    "clang-sim": Build(
        ("-Dbuildtype=debug", *CHECKED[1:], "-Dsim=true", "-Dplanted=true", "-Dwerror=true"), CLANG
    ),
}  # fmt: skip


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keeps other processes from configuring or compiling in a build directory meanwhile."""
    directory.parent.mkdir(exist_ok=True)
    with directory.with_name(f"{directory.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def environment(build: Build) -> Mapping[str, str]:
    """That of this process, with the build's compiler."""
    return {**os.environ, "CC": build.compiler} if build.compiler else os.environ


def configure(name: str) -> Path:
    """Configures build/NAME unless it is; returns the directory. The caller holds the lock."""
    build, directory = BUILDS[name], ROOT / "build" / name
    wanted = json.dumps([build.options, build.compiler])
    stamp = directory / "configured.json"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    words = [MESON, "setup", str(directory), str(ROOT / "stack"), "--libdir", "lib", "-Ddevelopment=true"]
    subprocess.run([*words, *build.options], env=environment(build), check=True)
    stamp.write_text(wanted, encoding="utf-8")
    return directory


def make(name: str) -> None:
    """Compiles everything of a build, with its tests."""
    with locked(ROOT / "build" / name):
        directory = configure(name)
        jobs = str(min(2, os.cpu_count() or 1))
        subprocess.run(["ninja", "-C", str(directory), "-j", jobs, "--quiet", "all", "meson-test-prereq"], check=True)


def test(name: str, processes: int) -> int:
    """Runs the tests of a build; the exit status of meson."""
    words = [MESON, "test", "-C", str(ROOT / "build" / name), "--no-rebuild", "--print-errorlogs"]
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [*words, "--num-processes", str(processes)], env={**os.environ, "PATH": path}, check=False
    )  # fmt: skip
    return done.returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="tests.stack.builds", description="Build the stack and run its tests.")
    parser.add_argument("verb", choices=("make", "test"))
    parser.add_argument("name", choices=sorted(BUILDS))
    parser.add_argument("--processes", type=int, default=2, help="tests at once (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        if options.verb == "test":
            return test(options.name, options.processes)
        make(options.name)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
