# SPDX-License-Identifier: BSD-2-Clause
"""What a boot makes of the files that QEMU leaves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.counted import boot as booting
from runners.counted.boot import Machine, boot
from runners.counted.counts import Symbols
from runners.counted.errors import BootError, CountedError

SYMBOLS = Symbols(["ffffffff81000000 T _stext"])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "plugin.so", tmp_path / "root.cpio", limit=300.0)


def pretend(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let a shell script run instead of QEMU, in the directory of the boot."""

    def command(_machine: Machine, _image: Path, _seed: int, folder: Path) -> list[str]:
        return ["sh", "-c", f"cd {folder}; {script}"]

    monkeypatch.setattr(booting, "_command", command)
    monkeypatch.setattr(booting, "POLL_SECONDS", 0.05)


def test_a_guest_that_prints_without_end_is_ended(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(booting, "CONSOLE_BYTES", 1 << 20)
    pretend(monkeypatch, "exec yes 'the same line' >console")
    with pytest.raises(BootError, match="it prints more than 1 MiB; its last line is “t"):
        boot(machine, tmp_path / "vmlinux", SYMBOLS, 1, tmp_path / "boot")


def test_a_hang_is_reported_although_the_plugin_was_killed_while_it_wrote(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(booting, "GRACE_SECONDS", 0.2)
    pretend(monkeypatch, "trap '' TERM; echo 'counted: up' >console; echo 'I fffff' >counts; while :; do :; done")
    hasty = Machine(machine.plugin, machine.initramfs, limit=1.0)
    with pytest.raises(BootError, match="hang: it does not end within 1 s, under load; its last line is “counted: up”"):
        boot(hasty, tmp_path / "vmlinux", SYMBOLS, 1, tmp_path / "boot")


@pytest.fixture
def busy_cpu() -> Iterator[None]:
    """Lets this process and its children run on one CPU only, which other programs use, too."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    yield
    for other in others:
        other.kill()
        other.wait()
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("busy_cpu")
def test_a_busy_machine_is_no_hang(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A loop of one second of CPU time, of which it gets a fifth.
    pretend(monkeypatch, "echo 'counted: up' >console; ulimit -t 1; while :; do :; done; exit 0")
    hasty = Machine(machine.plugin, machine.initramfs, limit=3.0)
    with pytest.raises(CountedError, match="QEMU failed"):
        boot(hasty, tmp_path / "vmlinux", SYMBOLS, 1, tmp_path / "boot")
