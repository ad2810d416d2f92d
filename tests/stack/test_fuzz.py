# SPDX-License-Identifier: BSD-2-Clause
"""Each fuzz target of the stack for a few seconds, from the corpus in the tree, under address and undefined sanitizers.

To look for longer, `FUZZ_SECONDS=600` in the environment; what is found is printed, to be kept in the corpus.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.stack.topology import MESON, ROOT, run

BUILD = ROOT / "build" / "fuzz"
CORPORA = ROOT / "stack" / "tests" / "fuzz" / "corpus"
TARGETS = sorted(path.name for path in CORPORA.iterdir() if path.is_dir())
SECONDS = int(os.environ.get("FUZZ_SECONDS", "8"))
OPTIONS = [
    "-Dfuzz=true",
    "-Dinvariants=true",
    "-Db_sanitize=address,undefined",
    "-Db_lundef=false",  # the sanitizers' runtime is in the program, not in the library
    "-Dbuildtype=debugoptimized",
]

Runs = dict[str, Future[subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def fuzzers() -> Path:
    """The directory of the fuzzers, built with clang."""
    if not (BUILD / "build.ninja").exists():
        run("env", "CC=clang-14", MESON, "setup", str(BUILD), str(ROOT / "stack"), *OPTIONS, timeout=120)
    run(MESON, "compile", "-C", str(BUILD), "-j2", timeout=600)
    return BUILD / "tests"


def fuzz(program: Path, corpus: Path, found: Path) -> subprocess.CompletedProcess[str]:
    """Runs a fuzzer for its time; its dictionary, if there is one, lies beside its corpus."""
    limits = [f"-max_total_time={SECONDS}", "-seed=1", "-close_fd_mask=2", "-timeout=60", f"-artifact_prefix={found}/"]
    words = corpus.with_suffix(".dict")
    if words.exists():
        limits.append(f"-dict={words}")
    return subprocess.run(
        [program, *limits, found, corpus],
        capture_output=True,
        text=True,
        timeout=SECONDS + 240,
        env={**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
        errors="replace",
        check=False,
    )


@pytest.fixture(scope="module")
def runs(fuzzers: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """All targets, two at a time."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield {
            name: pool.submit(fuzz, fuzzers / f"fuzz_{name}", CORPORA / name, tmp_path_factory.mktemp(name))
            for name in TARGETS
        }


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_breaks_it(runs: Runs, target: str) -> None:
    done = runs[target].result()
    assert done.returncode == 0, done.stderr[-5000:]
