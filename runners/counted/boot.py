# SPDX-License-Identifier: BSD-2-Clause
"""Boots a kernel in QEMU's emulator, in which every instruction takes one nanosecond of the guest's clock.

So nothing of this machine reaches the guest: the same kernel, program and seed execute the same instructions each time.
A seed changes what the guest's random number generator returns, and when its windows begin.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfweb.counted.costs import BootCosts, Window, of_windows
from runners.counted import console, counts
from runners.counted.counts import Symbols
from runners.counted.errors import BootError, CountedError
from runners.counted.programs import ENDS_WITH_PARENT

QEMU = "qemu-system-x86_64"
MEMORY_MIB = 256
CONSOLE_BYTES = 16 << 20
"""Max size of a console; a guest that prints more is ended."""
CONSOLE_TEXT = 2 << 20
"""Max number of bytes at either end of a console in which lines are looked for."""
POLL_SECONDS = 2.0
GRACE_SECONDS = 20
"""Seconds that QEMU has to end after SIGTERM, in which the plugin writes what it counted."""
# Without noreplace-smp Linux removes all lock prefixes on one CPU. A panic, and an oops, end the guest.
COMMAND_LINE = (
    "console=ttyS0 loglevel=5 panic=-1 oops=panic reboot=t,force nokaslr norandmaps noreplace-smp tsc=reliable"
)
_WINDOW = re.compile(r"counted: window (counted\.[\w./]{1,80}) (\d{1,9})")
_UP, _DONE = "counted: up", "counted: done"


@dataclass(frozen=True)
class Machine:
    """What all boots of a comparison share.

    `limit` is the max number of seconds of a boot, without those in which it waits for a CPU, `only` the beginning of
    the names of its loads, `windows` the number of windows of each load.
    """

    plugin: Path
    initramfs: Path
    limit: float = 120.0
    only: str = ""
    windows: int = 8


@dataclass
class Boot:
    """The windows of each load by its name, and the units of a window."""

    windows: dict[str, list[Window]] = field(default_factory=dict)
    units: dict[str, int] = field(default_factory=dict)

    @property
    def costs(self) -> dict[str, BootCosts]:
        """What each load costs."""
        return {name: of_windows(self.units[name], windows) for name, windows in self.windows.items()}


def boot(machine: Machine, image: Path, symbols: Symbols, seed: int, folder: Path) -> Boot:
    """Boots a kernel, waits until it has run all loads, and returns what they cost.

    The files `console`, `counts` and `qemu` of `folder` stay. Raises BootError with the decisive line of the console,
    and CountedError if QEMU does not start.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ended = _run(_command(machine, image, seed, folder), folder, machine.limit)
    text = _text(folder / "console")
    if (found := console.failure(text)) is not None:
        raise BootError(f"{found}\nconsole: {folder / 'console'}")
    if _size(folder / "console") > CONSOLE_BYTES:
        raise BootError(f"it prints more than {CONSOLE_BYTES >> 20} MiB; its last line is “{console.last_line(text)}”")
    counted = _counted(folder / "counts", symbols, ended=ended)
    if not ended:
        raise BootError(f"{_hang(text, counted.rest, machine.limit)}\nconsole: {folder / 'console'}")
    if _DONE not in console.lines(text):
        last = console.last_line(text)
        why = f"its last line is “{last}”" if last else "it printed nothing"
        raise BootError(f"it ended before it had run all loads: {why}\nconsole: {folder / 'console'}")
    return _by_load(text, counted.windows)


def _command(machine: Machine, image: Path, seed: int, folder: Path) -> list[str]:
    words = {"windows": machine.windows, "seed": seed, **({"only": machine.only} if machine.only else {})}
    argv = [*ENDS_WITH_PARENT, QEMU, "-machine", "q35", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "1"]
    argv += ["-m", str(MEMORY_MIB), "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01T00:00:00,clock=vm"]
    argv += ["-seed", str(seed), "-plugin", f"file={_option(machine.plugin)},out={_option(folder / 'counts')}"]
    argv += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    argv += ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"]
    argv += ["-chardev", f"file,id=console,path={_option(folder / 'console')}", "-serial", "chardev:console"]
    argv += ["-kernel", str(image), "-initrd", str(machine.initramfs)]
    return [*argv, "-append", " ".join([COMMAND_LINE, *(f"{name}={value}" for name, value in words.items())])]


def _option(path: Path) -> str:
    """Returns a path as part of an option of QEMU. Raises CountedError for a comma, which ends an option."""
    if "," in str(path):
        raise CountedError(f"QEMU cannot use files in {path.parent}: choose a directory without commas")
    return str(path.absolute())


def _run(argv: Sequence[str], folder: Path, limit: float) -> bool:
    """Runs QEMU; returns whether it ended by itself in time. Raises CountedError if QEMU fails."""
    with (folder / "qemu").open("w+", encoding="utf-8", errors="replace") as printed:
        if shutil.which(QEMU) is None:
            raise CountedError(f"{QEMU} is missing: run runners/install.sh kernel")
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed)
        try:
            ended = _wait(process, folder / "console", limit)
        finally:
            _end(process)
        if ended and process.returncode != 0:
            printed.seek(0)
            raise CountedError(f"QEMU failed: {printed.read().strip()[-500:] or 'it printed nothing'}")
    return ended


def _wait(process: subprocess.Popen[bytes], log: Path, limit: float) -> bool:
    """Waits until QEMU ends; returns False after the limit, and soon after a decisive line, which more lines follow."""
    begun, failed = time.monotonic(), False
    while True:
        try:
            process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            taken = time.monotonic() - begun - _without_cpu(process.pid)
            if failed or taken > limit or _size(log) > CONSOLE_BYTES:
                return False
            failed = console.failure(_text(log)) is not None
        else:
            return True


def _without_cpu(pid: int) -> float:
    """Returns the seconds in which a process could run and other processes had the CPU, by its thread that had to wait
    longest (schedstat in the kernel's Documentation/scheduler/sched-stats.rst). 0 if Linux does not count them.
    """
    waited = [0]
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # a thread that has ended
            waited.append(int(file.read_text(encoding="ascii").split()[1]))
    return max(waited) / 1e9


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends QEMU if it runs, at first so that the plugin writes what it counted."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _hang(text: str, rest: Window, limit: float) -> str:
    when = "under load" if _UP in console.lines(text) else "while it boots"
    function = counts.hottest(rest)
    where = f", in {function}" if function else ""
    last = console.last_line(text)
    return f"hang: it does not end within {limit:g} s, {when}{where}; its last line is “{last}”"


def _counted(path: Path, symbols: Symbols, *, ended: bool) -> counts.Counted:
    """Returns what the plugin counted; nothing if it was killed while it wrote. Raises CountedError."""
    nothing = counts.Counted([], Window())
    if not path.exists():
        return nothing
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return counts.read(file, symbols)
    except CountedError:
        if ended:
            raise
        return nothing


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _text(path: Path) -> str:
    """Returns the beginning and the end of a console, which has at most twice CONSOLE_TEXT bytes then."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        text = file.read(CONSOLE_TEXT)
        if (rest := _size(path) - CONSOLE_TEXT) > 0:
            file.seek(-min(rest, CONSOLE_TEXT), os.SEEK_END)
            text += file.read(CONSOLE_TEXT)
    return text.decode("utf-8", "replace").replace("\r", "").replace("\0", "")


def _by_load(text: str, windows: Sequence[Window]) -> Boot:
    """Returns the windows by load: the console names them in the order in which the plugin counted them."""
    found = Boot()
    named = [match for line in console.lines(text) if (match := _WINDOW.fullmatch(line))]
    if not named:
        raise CountedError("no load has a name that begins so: see docs/explanation/counted.md for the names")
    if len(named) != len(windows):
        raise CountedError(f"the plugin counted {len(windows)} windows, and the guest reports {len(named)}")
    for match, window in zip(named, windows, strict=True):
        found.windows.setdefault(match[1], []).append(window)
        found.units[match[1]] = int(match[2])
    return found
