# SPDX-License-Identifier: BSD-2-Clause
"""Builds that meson refuses, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stack.builds import MESON, ROOT
from tests.stack.topology import run

# Another architecture, whatever this machine has.
ARM = """
[binaries]
c = 'cc'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""


def setup(tmp_path: Path, *options: str) -> None:
    """Set up a build directory."""
    run(MESON, "setup", str(tmp_path / "build"), str(ROOT / "stack"), *options)


def test_another_architecture_is_not_built_for_one_cpu(tmp_path: Path) -> None:
    (tmp_path / "arm").write_text(ARM, encoding="ascii")
    with pytest.raises(AssertionError, match="up: only x86 has instructions that read and write at once"):
        setup(tmp_path, "-Dup=true", "--cross-file", str(tmp_path / "arm"))


def test_no_thread_sanitizer_for_one_cpu(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="up: the thread sanitizer knows of no order without lock instructions"):
        setup(tmp_path, "-Dup=true", "-Db_sanitize=thread")


@pytest.mark.parametrize("option", ["-Dup=true", "-Db_sanitize=address", "-Db_sanitize=thread"])
def test_nothing_for_the_simulated_machine_that_cannot_follow_it(tmp_path: Path, option: str) -> None:
    with pytest.raises(AssertionError, match="sim: the simulated machine has several CPUs, and neither"):
        setup(tmp_path, "-Dsim=true", option)
