# SPDX-License-Identifier: BSD-2-Clause
"""Each fuzz target of the stack for a few seconds, from the corpus in the tree, under address and undefined sanitizers.

To look for longer: `build/fuzz/tests/fuzz_frame -max_total_time=3600 FOUND stack/tests/fuzz/corpus/frame`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.stack.topology import ROOT, run

BUILD = ROOT / "build" / "fuzz"
OPTIONS = [
    "-Dfuzz=true",
    "-Dinvariants=true",
    "-Db_sanitize=address,undefined",
    "-Db_lundef=false",  # the sanitizers' runtime is in the program, not in the library
    "-Dbuildtype=debugoptimized",
]


@pytest.fixture(scope="module")
def fuzzers() -> Path:
    """The directory of the fuzzers, built with clang."""
    meson = str(ROOT / ".venv" / "bin" / "meson")
    if not (BUILD / "build.ninja").exists():
        run("env", "CC=clang-14", meson, "setup", str(BUILD), str(ROOT / "stack"), *OPTIONS, timeout=120)
    run(meson, "compile", "-C", str(BUILD), "-j2", timeout=600)
    return BUILD / "tests"


@pytest.mark.parametrize("target", ["frame", "tcp_opt", "control", "ctl", "loader"])
def test_nothing_breaks_it(fuzzers: Path, tmp_path: Path, target: str) -> None:
    corpus = ROOT / "stack" / "tests" / "fuzz" / "corpus" / target
    limits = ["-max_total_time=4", "-seed=1", "-close_fd_mask=2", f"-artifact_prefix={tmp_path}/"]
    environment = {**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    done = subprocess.run(
        [str(fuzzers / f"fuzz_{target}"), *limits, str(tmp_path), str(corpus)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        errors="replace",
    )
    assert done.returncode == 0, done.stderr[-5000:]
