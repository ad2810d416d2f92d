# SPDX-License-Identifier: BSD-2-Clause
"""The guest's program and QEMU's plugin, with Debian's kernel for virtual machines, which needs no build."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfweb.counted import loads
from runners.counted import programs
from runners.counted.boot import Boot, Machine, boot
from runners.counted.counts import Symbols
from runners.counted.errors import BootError, CountedError
from runners.cpio import Archive
from runners.labs import vmimage, vmlab

# Debian's kernel comes without its symbols, so all of it counts as one function.
SYMBOLS = Symbols(["ffffffff81000000 T kernel"])
Start = Callable[..., Boot]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    modules = sorted((vmlab.STORE / "kernel" / "lib" / "modules").rglob("veth.ko"))
    folder = tmp_path_factory.mktemp("programs")
    return Machine(programs.plugin(folder), programs.initramfs(folder, modules), limit=600, windows=2)


def start(machine: Machine, folder: Path, seed: int = 1) -> Boot:
    return boot(machine, vmimage.kernel(vmlab.STORE), SYMBOLS, seed, folder)


def test_every_load_runs_and_is_counted(machine: Machine, tmp_path: Path) -> None:
    made = start(replace(machine, windows=1), tmp_path / "boot")
    assert tuple(made.windows) == loads.NAMES
    for windows in made.windows.values():
        (window,) = windows
        cost = window.functions["kernel"]
        assert window.user > 0
        assert min(cost.instructions, cost.accesses) > cost.locked > 0


def test_a_boot_of_the_same_seed_is_the_same_to_the_instruction(machine: Machine, tmp_path: Path) -> None:
    one = replace(machine, only="counted.tcp.rr/local/ipv4")
    made = [start(one, tmp_path / name) for name in ("first", "second")]
    assert made[0] == made[1]
    assert {name: len(windows) for name, windows in made[0].windows.items()} == {"counted.tcp.rr/local/ipv4": 2}
    for name in ("console", "counts"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def root_with(tmp_path: Path, program: str) -> Path:
    """The root of a guest with another first process."""
    built = tmp_path / "init"
    subprocess.run(["gcc", "-O1", "-static", "-x", "c", "-", "-o", built], input=program, text=True, check=True)
    archive = Archive(tmp_path / "root.cpio")
    archive.add("init", stat.S_IFREG | 0o755, built.read_bytes())
    archive.close()
    return tmp_path / "root.cpio"


def test_a_kernel_that_panics_is_reported_with_its_line(machine: Machine, tmp_path: Path) -> None:
    ends = replace(machine, initramfs=root_with(tmp_path, "int main(void) { return 3; }"))
    with pytest.raises(
        BootError, match=r"^panic: Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000300"
    ):
        start(ends, tmp_path / "boot")


def test_a_guest_that_does_not_end_is_ended(machine: Machine, tmp_path: Path) -> None:
    loops = root_with(tmp_path, 'int puts(const char *); int main(void) { puts("counted: up"); for (;;) ; }')
    with pytest.raises(BootError, match=r"^hang: it does not end within 4 s"):
        start(replace(machine, initramfs=loops, limit=4), tmp_path / "boot")


def test_a_guest_that_ends_early_is_not_taken_as_done(machine: Machine, tmp_path: Path) -> None:
    headers = "#include <sys/reboot.h>\n#include <stdio.h>\n"
    program = 'int main(void) { puts("so far"); fflush(stdout); reboot(RB_AUTOBOOT); }'
    early = root_with(tmp_path, headers + program)
    with pytest.raises(BootError, match=r"ended before it had run all loads: its last line is “so far”"):
        start(replace(machine, initramfs=early), tmp_path / "boot")


def test_loads_that_do_not_exist_are_an_error(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(CountedError, match="no load"):
        start(replace(machine, only="counted.sctp"), tmp_path / "boot")
