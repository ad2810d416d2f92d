#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes into a program for the simulated machine how many instructions each of its basic blocks has.

    simweights.py PROGRAM OUTPUT

The compiler calls __sanitizer_cov_trace_pc() at the beginning of each block.  What lies between such a call and the
next one, or the end of straight code, is the block; its number of instructions goes into the section .sim_weights at
the distance of the call's return address from the start of the program, where machine/sim/code.c looks for it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

TRACER = "<__sanitizer_cov_trace_pc>"
SECTION = ".sim_weights"
MOST = 255
_INSTRUCTION = re.compile(r"\s+([0-9a-f]+):\t(\S+)(.*)")
_ENDS = re.compile(r"(?:notrack )?jmp|ret|hlt|ud2|b|br")
_NOTHING = re.compile(r"nop|endbr64|xchg\s+%ax,%ax|data16|cs")


def weights(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yields the return address of each call of the tracer, and the number of instructions up to the end of its block,
    from what `objdump -d --no-show-raw-insn` prints.
    """
    place, count, called = 0, 0, False
    for line in lines:
        found = _INSTRUCTION.match(line)
        if found is None:
            if place:
                yield place, count
            place = 0
            continue
        address, name, rest = int(found.group(1), 16), found.group(2), found.group(3)
        if called:
            place, count, called = address, 0, False
        if TRACER in rest:
            if place:
                yield place, count
            place, called = 0, True
        elif place and not _NOTHING.fullmatch(name):
            count += 1
            if _ENDS.fullmatch(name):
                yield place, count
                place = 0


def _headers(program: Path) -> tuple[int, int]:
    """The size of the section, and the address where the program starts."""
    headers = subprocess.run(["objdump", "-h", "-t", str(program)], check=True, capture_output=True, text=True).stdout
    size = re.search(rf"{re.escape(SECTION)}\s+([0-9a-f]+)", headers)
    start = re.search(r"^([0-9a-f]+) .* __executable_start$", headers, re.MULTILINE)
    if size is None or start is None:
        raise SystemExit(f"simweights: {program} has no section {SECTION}, or no symbol __executable_start")
    return int(size.group(1), 16), int(start.group(1), 16)


def table(program: Path) -> bytes:
    """The section's content.  Raises SystemExit for a program that is too large for it."""
    size, start = _headers(program)
    content = bytearray(size)
    command = ["objdump", "-d", "--no-show-raw-insn", str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        assert listing.stdout is not None  # noqa: S101
        for address, count in weights(listing.stdout):
            if not 0 <= address - start < size:
                raise SystemExit(f"simweights: {program} has code beyond {size} bytes: make SIM_TEXT larger")
            content[address - start] = max(1, min(count, MOST))
    return bytes(content)


def main(program: Path, output: Path) -> None:
    """Copies the program, with weights."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(table(program))
        file.flush()
        subprocess.run(["objcopy", "--update-section", f"{SECTION}={file.name}", str(program), str(output)], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
