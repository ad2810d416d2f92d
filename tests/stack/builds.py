# SPDX-License-Identifier: BSD-2-Clause
"""All builds of the stack that tests and benches use, and the stack's own tests in some of them.

    python -m tests.stack.builds make NAME      configure and compile build/NAME and its tests
    python -m tests.stack.builds test NAME      run its tests; the results are in build/NAME/meson-logs

ccache finds compilations of other clones on this machine (`./dev` chooses its directory). A directory with other
options is made anew.
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
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MESON = str(ROOT / ".venv" / "bin" / "meson")
CHECKED = ("-Dbuildtype=debugoptimized", "-Dinvariants=true", "-Dwitness=true", "-Dlock_profiling=true")
"""Options of builds with checks."""
UNOPTIMISED = ("-Dbuildtype=debug", *CHECKED[1:])
TESTS = "meson-test-prereq"
"""The target of all programs that the tests of a build need."""
EXIT_MILLISECONDS = 20
"""How long a program of the thread sanitizer lets its other threads go on after exit(). The default of a second is paid
by each child of fork(), too, while the threads of its parent keep a CPU busy.
"""
CLANG = "ccache clang-14"  # meson puts ccache before a compiler only if CC does not name one


@dataclass(frozen=True)
class Build:
    """Options of meson, the compiler unless it is the default one, gcc, and the linker.

    mold links the programs of the tests in a tenth of the time of GNU ld. But it does not support INSERT in a linker
    script, which layouts need, and it is not the linker of a release.
    """

    options: tuple[str, ...]
    compiler: str = ""
    linker: str = "mold"


BUILDS = {
    "release": Build(("-Dbuildtype=release", "-Dlayouts=2"), linker="bfd"),
    "address": Build((*CHECKED, "-Db_sanitize=address,undefined")),
    "thread": Build((*CHECKED, "-Db_sanitize=thread")),
    # clang has warnings that gcc does not have, before it optimises anything.
    "clang": Build((*UNOPTIMISED, "-Dwerror=true"), CLANG),
    "clang-sim": Build((*UNOPTIMISED, "-Dsim=true", "-Dplanted=true", "-Dwerror=true"), CLANG),
    "sim": Build(("-Dbuildtype=release", "-Dsim=true")),
    "planted": Build(
        ("-Dbuildtype=release", "-Dinvariants=true", "-Dwitness=true", "-Dsim=true", "-Dplanted=true")
    ),
    "up": Build(("-Dbuildtype=release", "-Dup=true"), linker="bfd"),
    # The sanitizers' runtime is in the programs and not in the library.
    "fuzz": Build(
        ("-Dbuildtype=debugoptimized", "-Dinvariants=true", "-Dfuzz=true", "-Db_sanitize=address,undefined",
         "-Db_lundef=false"), CLANG
    ),
}  # fmt: skip


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep other processes from configuring or compiling in a build directory meanwhile."""
    directory.parent.mkdir(exist_ok=True)
    with directory.with_name(f"{directory.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def environment(build: Build) -> Mapping[str, str]:
    """Return the environment of this process, with the build's compiler and linker."""
    compiler = {"CC": build.compiler} if build.compiler else {}
    return {**os.environ, **compiler, "CC_LD": build.linker}


def run(*words: str, env: Mapping[str, str] | None = None) -> None:
    """Runs a program and prints its output on standard error when it has ended; standard output is for results. Raises
    CalledProcessError if it has failed.

    Ctrl-C reaches it too, and meson then prints a traceback, of which nothing is shown.
    """
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout, end="", file=sys.stderr, flush=True)
    done.check_returncode()


def configure(name: str) -> Path:
    """Configures build/NAME unless it is; returns the directory. The caller holds the lock."""
    build, directory = BUILDS[name], ROOT / "build" / name
    wanted = json.dumps(asdict(build))
    stamp = directory / "configured.json"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    words = [MESON, "setup", str(directory), str(ROOT / "stack"), "--libdir", "lib", "-Ddevelopment=true"]
    run(*words, *build.options, env=environment(build))
    stamp.write_text(wanted, encoding="utf-8")
    return directory


def make(name: str, *targets: str) -> Path:
    """Compiles what is installed, and other targets; returns the directory of the build."""
    with locked(ROOT / "build" / name):
        directory = configure(name)
        jobs = str(min(2, os.cpu_count() or 1))
        run("ninja", "-C", str(directory), "-j", jobs, "--quiet", "all", *targets)
    return directory


def test(name: str, processes: int) -> int:
    """Runs the tests of a build; the exit status of meson."""
    words = [MESON, "test", "-C", str(ROOT / "build" / name), "--no-rebuild", "--print-errorlogs"]
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    known = {"TSAN_OPTIONS": f"atexit_sleep_ms={EXIT_MILLISECONDS}", **os.environ, "PATH": path}
    return subprocess.run([*words, "--num-processes", str(processes)], env=known, check=False).returncode


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
        make(options.name, TESTS)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
