#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Links the stack again and again, each time in another layout: what `-Dlayouts=N` installs below layouts/.

    layouts.py OUTPUT N OBJECT... -- COMPILER OPTION...

Where functions and variables lie decides which of them share cache lines, sets of caches, and entries of predictors.
That can change a rate by some percent without a change of the code, so a change is measured in many layouts (Mytkowicz
et al. 2009, "Producing Wrong Data Without Doing Anything Obviously Wrong!"; Curtsinger and Berger 2013, "Stabilizer").
The whole program is compiled once, with a section for each function and variable, as for an ordinary link.  A layout is
their order and the gaps between them; its number is the seed of both.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

OPTIONS = ("-ffunction-sections", "-fdata-sections", "-pthread")
KINDS = ("text.hot", "text", "data", "bss")
"""Each is shuffled by itself: what every packet passes stays together."""
GRAIN, GRAINS = 16, 4
"""Functions begin at multiples of GRAIN bytes; less than GRAINS of these are left free before each."""
_SECTION = re.compile(r"\] \.((?:text|data|bss)\.\S+) ")
# Code that seldom runs stays together, away from the rest, and constants with addresses stay protected.
_APART = re.compile(r"text\.(?:unlikely|startup|exit)\.|data\.rel\.ro\.")


def sections(listing: str) -> list[str]:
    """The sections to be moved of what `readelf --sections --wide` prints, in its order, without the leading dot."""
    return [name for name in dict.fromkeys(_SECTION.findall(listing)) if not _APART.match(name)]


def kind_of(name: str) -> str:
    """The kind of a section that is to be moved."""
    return next(kind for kind in KINDS if name.startswith(f"{kind}."))


def script(names: Iterable[str], seed: int) -> Iterator[str]:
    """The lines of a linker script that adds to the linker's own (ld(1), INSERT)."""
    names, chance = list(names), random.Random(seed)  # noqa: S311 - an order to repeat, not a secret
    for kind in KINDS:
        moved = [name for name in names if kind_of(name) == kind]
        chance.shuffle(moved)
        yield f"SECTIONS {{ .{kind}.layout : {{"
        for name in moved:
            yield f". += {GRAIN * chance.randrange(GRAINS)}; *(.{name})"
        yield f"}} }} INSERT BEFORE .{kind.partition('.')[0]};"


def run(*argv: str | Path) -> str:
    """What a command prints.  Raises subprocess.CalledProcessError."""
    return subprocess.run(list(map(str, argv)), stdout=subprocess.PIPE, text=True, check=True).stdout


def compiled(compiler: Sequence[str], objects: Sequence[str], link: Sequence[str], work: Path) -> list[Path]:
    """What is linked when link-time optimisation is done, as objects; they say how each function was compiled."""
    run(*compiler, *OPTIONS, *link, "-save-temps=obj", *objects, "-o", work / "whole")
    found = []
    for assembly in sorted(work.glob("*.ltrans.s")):
        found.append(assembly.with_suffix(".o"))
        run(*compiler, "-c", assembly, "-o", found[-1])
    return found


def lay_out(compiler: Sequence[str], objects: Sequence[str], link: Sequence[str], outputs: Sequence[Path]) -> None:
    """Links the objects once for each output; the first is layout 1."""
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        parts = compiled(compiler, objects, link, work)
        names = sections(run("readelf", "--sections", "--wide", *parts))
        for seed, output in enumerate(outputs, 1):
            order = work / f"{seed}.ld"
            order.write_text("\n".join(script(names, seed)), encoding="ascii")
            run(*compiler, *link, "-pthread", "-T", order, *parts, "-o", output)


def main() -> None:
    """The library is what has the interface for programs, and the router what has a main()."""
    given, compiler = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    output, count, *objects = given
    directories = [Path(output) / str(seed) for seed in range(1, int(count) + 1)]
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
    router = [name for name in objects if not Path(name).name.startswith("api_")]
    library = [name for name in objects if not Path(name).name.startswith("tools_")]
    shared = ("-shared", "-fPIC", "-Wl,-soname,libstack.so")
    lay_out(compiler, library, shared, [directory / "libstack.so" for directory in directories])
    lay_out(compiler, router, (), [directory / "bootstack" for directory in directories])


if __name__ == "__main__":
    main()
