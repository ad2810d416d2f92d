# SPDX-License-Identifier: BSD-2-Clause
"""Fuzzers of the stack under the address and undefined-behaviour sanitizers.

Each replays its corpus in the tree and the inputs of earlier runs, then explores for FUZZ_SECONDS (8). New inputs are
stored in var/fuzz/TARGET, and failing inputs there as crash-*, leak-* or timeout-*: copy them into the corpus.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.stack import builds
from tests.stack.builds import ROOT

CORPORA = ROOT / "stack" / "tests" / "fuzz" / "corpus"
FOUND = ROOT / "var" / "fuzz"
TARGETS = sorted(path.name for path in CORPORA.iterdir() if path.is_dir())
SECONDS = int(os.environ.get("FUZZ_SECONDS", "8"))

Runs = dict[str, Future[subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def fuzzers() -> Path:
    """The directory of the fuzzers, built with clang."""
    return builds.make("fuzz") / "tests"


def fuzz(program: Path, corpus: Path) -> subprocess.CompletedProcess[str]:
    """Run a fuzzer for its time; its dictionary, if there is one, is beside its corpus."""
    found = FOUND / corpus.name
    found.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={SECONDS}", "-seed=1", "-close_fd_mask=2", "-timeout=60", f"-artifact_prefix={found}/"]
    words = corpus.with_suffix(".dict")
    if words.exists():
        limits.append(f"-dict={words}")
    return subprocess.run(
        [program, *limits, found, corpus],
        capture_output=True,
        text=True,
        timeout=SECONDS + 1800,
        env={**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
        errors="replace",
        check=False,
    )


@pytest.fixture(scope="module")
def runs(fuzzers: Path) -> Iterator[Runs]:
    """Run all targets, two at a time."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield {name: pool.submit(fuzz, fuzzers / f"fuzz_{name}", CORPORA / name) for name in TARGETS}


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_breaks_it(runs: Runs, target: str) -> None:
    done = runs[target].result()
    assert done.returncode == 0, done.stderr[-5000:]
