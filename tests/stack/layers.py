# SPDX-License-Identifier: BSD-2-Clause
"""`python -m tests.stack.layers [BUILD]`: the order of the stack's folders, derived from their includes and symbols.

A folder may use the folders below it: include their headers, and refer to their symbols. The printed order is the one
with the fewest upward references; each of those is printed with its file. There must be none.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from tests.stack.builds import ROOT
from tests.stack.topology import run

STACK = ROOT / "stack"
FOLDERS = ("machine", "kern", "net", "netinet", "netinet6", "dev", "boot", "api")
OBJECTS = "libstack.so.p"  # of a release build by gcc: the core, too; link-time optimisation keeps the symbols
INCLUDE = re.compile(r'^\s*#\s*include\s+"(?P<header>[^"]+)"', re.MULTILINE)
PASSED_ON = {"pthread_create"}
"""Functions of the C library that api/ defines, too, to notice the program's calls. It passes every call on, so a call
of a lower folder is one of the C library.
"""
UNDEFINED, DEFINED = "Uw", "TDBRVWC"  # letters of nm(1); small ones stay in their file


class Reference(NamedTuple):
    """A use of a header or a symbol that belongs to another folder."""

    user: str  # path in stack/
    name: str
    owner: str  # path in stack/

    @property
    def folders(self) -> tuple[str, str]:
        """The folders of the user and of the owner."""
        return folder(self.user), folder(self.owner)


def folder(path: str) -> str:
    """The first component of a path in stack/."""
    return path.partition("/")[0]


def includes(root: Path = STACK) -> Iterator[Reference]:
    """Every include of another folder's header."""
    for path in sorted(root.rglob("*.[ch]")):
        user = str(path.relative_to(root))
        if folder(user) in FOLDERS:
            for header in INCLUDE.findall(path.read_text(encoding="utf-8")):
                if folder(header) in FOLDERS and folder(header) != folder(user):
                    yield Reference(user, header, header)


def calls(tables: Mapping[str, str]) -> Iterator[Reference]:
    """Every use of another folder's symbol; `tables` has the output of nm(1) for the object of each source file."""
    symbols = {source: [line.split()[-2:] for line in table.splitlines()] for source, table in tables.items()}
    defined = ((name, source) for source, table in symbols.items() for kind, name in table if kind in DEFINED)
    owners = {name: source for name, source in defined if name not in PASSED_ON}
    for user, table in sorted(symbols.items()):
        for kind, name in table:
            owner = owners.get(name)
            if kind in UNDEFINED and owner is not None and folder(owner) != folder(user):
                yield Reference(user, name, owner)


def symbol_tables(build: Path) -> dict[str, str]:
    """The output of nm for each object of the library; meson names the object of kern/lock.c kern_lock.c.o."""
    tables = {}
    for path in sorted((build / OBJECTS).glob("*.c.o")):
        source = path.name.removesuffix(".o").replace("_", "/", 1)
        tables[source] = run("nm", str(path))
    return tables


def order(references: Iterable[Reference]) -> tuple[str, ...]:
    """The folders from the bottom up, with the fewest upward references.

    Grows the best order of every set of folders by one more on top (Lawler, On the comparison of two feedback problems,
    1964); 8 folders have 256 sets.
    """
    counts = Counter(reference.folders for reference in references)
    best: dict[frozenset[str], tuple[int, tuple[str, ...]]] = {frozenset(): (0, ())}
    for size in range(1, len(FOLDERS) + 1):
        for chosen in map(frozenset, combinations(FOLDERS, size)):
            best[chosen] = min(
                (cost + sum(counts[lower, top] for lower in below), (*below, top))
                for top in chosen
                for cost, below in [best[chosen - {top}]]
            )
    return best[frozenset(FOLDERS)][1]


def upwards(references: Iterable[Reference], folders: Sequence[str]) -> list[Reference]:
    """References whose owner is above their user."""
    height = {name: index for index, name in enumerate(folders)}
    return [each for each in references if height[each.folders[0]] < height[each.folders[1]]]


def main(argv: Sequence[str] | None = None) -> int:
    builds = (sys.argv[1:] if argv is None else argv) or [str(ROOT / "build" / "release")]
    references = [*includes(), *calls(symbol_tables(Path(builds[0])))]
    folders = order(references)
    found = upwards(references, folders)
    for each in found:
        print(f"{each.user}: {each.name} ({each.owner})")
    print(f"folders from the bottom up: {', '.join(folders)}")
    print(f"{len(references)} references to another folder, {len(found)} of them upwards")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
