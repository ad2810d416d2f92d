# SPDX-License-Identifier: BSD-2-Clause
"""What the plugin counted (plugin.c has the format), by function.

Addresses become functions by the kernel's System.map. A compiler may split a function or copy it: `f.cold`, `f.part.0`
and `f.constprop.0` count as `f`. So do functions of the same name in different files.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perfweb.counted.costs import Cost, Window
from runners.counted.errors import CountedError

_TEXT = frozenset("tTwW")
_KERNEL = 1 << 63
_ENDS = frozenset({"_etext", "_einittext"})
"""Symbols at the ends of the kernel's functions: what lies behind them belongs to none."""
OUTSIDE = "(outside of functions)"
"""The name of an address that belongs to no symbol, such as that of a module."""


class Symbols:
    """The functions of a kernel by address."""

    def __init__(self, system_map: Iterable[str]) -> None:
        names: dict[int, str] = {}
        for line in system_map:
            words = line.split()
            if len(words) == 3 and words[1] in _TEXT and (address := _hexadecimal(words[0])) >= _KERNEL:
                name = words[2].partition(".")[0] or words[2]
                names[address] = min(names.get(address, name), name, key=_obscurity)
        if not names:
            raise CountedError("System.map has no functions")
        self._addresses = sorted(names)
        self._names = [names[address] for address in self._addresses]
        self._known: dict[int, str] = {}

    def function(self, address: int) -> str:
        """Returns the function that an address is in."""
        name = self._known.get(address)
        if name is None:
            index = bisect.bisect_right(self._addresses, address) - 1
            name = self._names[index] if index >= 0 else OUTSIDE
            name = OUTSIDE if name in _ENDS else name
            self._known[address] = name
        return name


def _obscurity(name: str) -> tuple[int, int, str]:
    """Orders the names of one address: the one that people know comes first."""
    return len(name) - len(name.lstrip("_")), len(name), name


def _hexadecimal(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0


@dataclass
class Counted:
    """The windows of a boot in their order, and what was executed after the last mark."""

    windows: list[Window]
    rest: Window


def read(printed: Iterable[str], symbols: Symbols) -> Counted:
    """Returns what the plugin counted in a boot. Raises CountedError for a damaged file."""
    windows: list[Window] = []
    rest, ended = Window(), False
    try:
        for kind, numbers in _records(printed):
            if kind == "X":
                ended = True
            elif kind == "W":
                windows.append(Window(user=numbers[0]))
            else:
                _add(windows[-1], symbols, *numbers)
    except (ValueError, IndexError, TypeError) as error:
        raise CountedError(f"the plugin's file is damaged: {error}") from None
    if ended and windows:
        rest = windows.pop()
    return Counted(windows, rest)


def _records(printed: Iterable[str]) -> Iterator[tuple[str, list[int]]]:
    for line in printed:
        kind, *words = line.split()
        if kind == "I":
            address, *others = words
            yield kind, [int(address, 16), *map(int, others)]
        elif kind in {"W", "X"}:
            yield kind, list(map(int, words))
        else:
            raise ValueError(f"{line[:80]!r} is no record")


def _add(window: Window, symbols: Symbols, address: int, count: int, accesses: int, locked: int) -> None:
    name = symbols.function(address)
    before = window.functions.get(name, Cost())
    window.functions[name] = Cost(
        before.instructions + count, before.locked + count * locked, before.accesses + accesses
    )


def hottest(window: Window) -> str:
    """Returns the function with most of a window's instructions, if it has at least half; else an empty text."""
    total = window.kernel().instructions
    name = max(window.functions, key=lambda name: window.functions[name].instructions, default="")
    return name if name and 2 * window.functions[name].instructions >= total else ""
