# SPDX-License-Identifier: BSD-2-Clause
"""Decides whether Python's backtracking matcher takes linear time for a pattern.

The pattern becomes a position automaton (Glushkov 1961): one state for each character that it can read.  The matcher
visits, in the worst case, every partial path of that automaton that the text allows.  Their number at each character is

* exponential where a state reaches itself by two different paths over the same word, and
* polynomial where for two states p and q some word leads from p to p, from p to q, and from q to q
  (Weber and Seidl 1991, "On the degree of ambiguity of finite automata", criteria EDA and IDA).

Otherwise it is bounded by a constant, and the time is linear in the text.  A search tries all beginnings, so it adds
a state that reads anything and leads to the beginning of the pattern.  Atomic groups and possessive repeats drop all
paths but one when they end.  Where the answer is not exact (look-around, word boundaries), it errs towards "ambiguous".

Bounded repeats of up to BOUNDED only multiply the time by a constant, and count for the first criterion alone.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

BOUNDED = 200
LINE, START, GUARDED = "after a line feed", "at the beginning of the text", "asserts something"
_UNIVERSE = [*map(chr, range(256)), "\u0131", "\u017f", "\u0660", "\u2003", "\u212a", "\u4e00", "\u0301", "\ud800"]
_NEWLINE = 1 << _UNIVERSE.index("\n")
_ALL = (1 << len(_UNIVERSE)) - 1
_parser: Any = import_module("re._parser")

Flags = frozenset[str]
_NONE: Flags = frozenset()
Step = tuple[int, int, Flags]
_Triple = tuple[int, int, int, bool | None, bool]


@dataclass
class _Part:
    """A part of a pattern: how it can be empty (None: not at all), and the positions that begin and end it."""

    empty: Flags | None
    first: list[tuple[int, Flags]] = field(default_factory=list)
    last: list[tuple[int, Flags]] = field(default_factory=list)


class Automaton:
    """The positions of a pattern, from 1 on, with the steps between them; position 0 is the search's own loop."""

    def __init__(self, pattern: re.Pattern[Any], *, search: bool, full: bool) -> None:
        self.flags = pattern.flags
        self.reads: list[int] = [_ALL]
        self.atomic: list[frozenset[int]] = [frozenset()]
        self.steps: list[Step] = []
        self.bounded: list[Step] = []
        self.undecided = ""
        self._groups: list[int] = []
        text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
        whole = self._sequence(_parser.parse(text, pattern.flags & ~re.UNICODE), unbounded=False)
        self.accepting = {position for position, flags in whole.last if not flags} if not full else set()
        if search:
            self.steps += [(0, 0, _NONE), *((0, position, flags) for position, flags in whole.first)]

    def _position(self, reads: int) -> _Part:
        self.reads.append(reads)
        self.atomic.append(frozenset(self._groups))
        here = len(self.reads) - 1
        return _Part(None, [(here, _NONE)], [(here, _NONE)])

    def _sequence(self, items: Any, *, unbounded: bool) -> _Part:
        made = _Part(_NONE)
        for item in items:
            made = self._joined(made, self._item(*item, unbounded=unbounded))
        return made

    def _joined(self, a: _Part, b: _Part) -> _Part:
        self.steps += [(p, q, f | g) for p, f in a.last for q, g in b.first]
        first = a.first + ([(q, a.empty | g) for q, g in b.first] if a.empty is not None else [])
        last = b.last + ([(p, f | b.empty) for p, f in a.last] if b.empty is not None else [])
        empty = a.empty | b.empty if a.empty is not None and b.empty is not None else None
        return _Part(empty, first, last)

    def _item(self, kind: Any, value: Any, *, unbounded: bool) -> _Part:
        name = str(kind)
        if name in {"LITERAL", "NOT_LITERAL", "ANY", "IN"}:
            reads = (1 << place for place, one in enumerate(_UNIVERSE) if self._matches(kind, value, one))
            return self._position(sum(reads))
        if name == "SUBPATTERN":
            return self._sequence(value[3], unbounded=unbounded)
        if name == "BRANCH":
            return self._either([self._sequence(branch, unbounded=unbounded) for branch in value[1]])
        if name in {"MAX_REPEAT", "MIN_REPEAT"}:
            return self._repeat(*value, unbounded=unbounded)
        if name in {"POSSESSIVE_REPEAT", "ATOMIC_GROUP"}:
            self._groups.append(len(self.reads))
            items = value if name == "ATOMIC_GROUP" else [(_parser.MAX_REPEAT, value)]
            made = self._sequence(items, unbounded=unbounded)
            self._groups.pop()
            return made
        if name.startswith("GROUPREF"):
            self.undecided = "it refers back to a group"
        # Look-around is not analysed: anything may follow.
        return _Part(frozenset({self._guard(str(value)) if name == "AT" else GUARDED}))

    def _guard(self, where: str) -> str:
        if where == "AT_BEGINNING" and self.flags & re.MULTILINE:
            return LINE
        return START if where in {"AT_BEGINNING", "AT_BEGINNING_STRING"} else GUARDED

    def _either(self, parts: list[_Part]) -> _Part:
        empties = sorted((part.empty for part in parts if part.empty is not None), key=len)
        self.undecided = self.undecided or ("two alternatives are the same" if len(empties) > 1 else "")
        first = [one for part in parts for one in part.first]
        return _Part(empties[0] if empties else None, first, [one for part in parts for one in part.last])

    def _repeat(self, low: int, high: Any, items: Any, *, unbounded: bool) -> _Part:
        endless = unbounded or int(high) > BOUNDED
        part = self._sequence(items, unbounded=endless)
        if int(high) > 1:
            again = [(p, q, f | g) for p, f in part.last for q, g in part.first]
            (self.steps if endless else self.bounded).extend(again)
        return _Part(_NONE if low == 0 else part.empty, part.first, part.last)

    def _matches(self, kind: Any, value: Any, one: str) -> bool:
        """Whether a part that reads one character reads this one."""
        name = str(kind)
        if name == "ANY":
            return bool(self.flags & re.DOTALL) or one != "\n"
        if name == "IN":
            negated = str(value[0][0]) == "NEGATE"
            return negated != any(self._matches(item[0], item[1], one) for item in (value[1:] if negated else value))
        if name == "CATEGORY":
            letter = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[str(value).rpartition("_")[2]]
            wanted = "_NOT_" not in str(value)
            return wanted == (re.match(letter, one, self.flags & re.ASCII) is not None)
        if name == "RANGE":
            return any(value[0] <= ord(case) <= value[1] for case in self._cases(one))
        return (name == "NOT_LITERAL") != (chr(value) in self._cases(one))

    def _cases(self, one: str) -> set[str]:
        if not self.flags & re.IGNORECASE:
            return {one}
        return {case for case in (one, one.lower(), one.upper()) if len(case) == 1}


def why_not_linear(pattern: re.Pattern[Any], *, search: bool = True, full: bool = False) -> str:
    """Return why a pattern may take more than linear time; empty if it does not.

    `search`: it is searched anywhere, as by search(), finditer(), sub() and split(); else only match() and fullmatch()
    are called. `full`: fullmatch() is called, so that a match may fail at its very end.
    """
    automaton = Automaton(pattern, search=search, full=full)
    if automaton.undecided:
        return automaton.undecided
    if found := _exponential(automaton):
        return f"exponential: repeats of {_shown(automaton, found)} overlap"
    for p, q in _pairs(automaton):
        if _polynomial(automaton, p, q):
            loop = "any beginning of a search" if p == 0 else _shown(automaton, p)
            return f"polynomial: {loop} and the repeat of {_shown(automaton, q)} overlap"
    return ""


def _shown(automaton: Automaton, position: int) -> str:
    reads = [repr(one) for place, one in enumerate(_UNIVERSE[:127]) if automaton.reads[position] >> place & 1]
    return f"position {position} ({', '.join(reads[:4])}{', …' if len(reads) > 4 else ''})"


def _successors(count: int, steps: Iterable[Step]) -> list[list[tuple[int, Flags]]]:
    """Without steps that only the beginning of the text allows, because those are taken once."""
    found: list[list[tuple[int, Flags]]] = [[] for _ in range(count)]
    for p, q, flags in dict.fromkeys(steps):
        if START not in flags:
            found[p].append((q, flags))
    return found


def _reachable(successors: list[list[tuple[int, Flags]]]) -> list[set[int]]:
    found = []
    for begin in range(len(successors)):
        seen, waiting = set[int](), [begin]
        while waiting:
            for q, _ in successors[waiting.pop()]:
                if q not in seen:
                    seen.add(q)
                    waiting.append(q)
        found.append(seen)
    return found


def _exponential(automaton: Automaton) -> int | None:
    """A position that two different paths over the same word lead back to; or the same step in two ways."""
    ways = Counter(automaton.steps + automaton.bounded)
    successors = _successors(len(automaton.reads), [*automaton.steps, *automaton.bounded])
    reachable = _reachable(successors)
    for p in range(1, len(successors)):
        if p not in reachable[p]:
            continue
        inside = {q for q in reachable[p] if p in reachable[q]}
        if any(count > 1 and step[0] == p and step[1] in inside for step, count in ways.items()):
            return p
        waiting, seen = deque([(p, p, False)]), set[tuple[int, int, bool]]()
        while waiting:
            a, b, apart = waiting.popleft()
            for one, _ in successors[a]:
                for other, _ in successors[b]:
                    if one not in inside or other not in inside or not automaton.reads[one] & automaton.reads[other]:
                        continue
                    state = (one, other, apart or one != other)
                    if state == (p, p, True):
                        return p
                    if state not in seen:
                        seen.add(state)
                        waiting.append(state)
    return None


def _pairs(automaton: Automaton) -> Iterator[tuple[int, int]]:
    """Pairs of repeated positions, the second of which can come after the first.

    A path through an accepting position ends the match, so there is no second one to try; and of the paths that leave
    an atomic group there is only one.
    """
    reachable = _reachable(_successors(len(automaton.reads), automaton.steps))
    loops = [p for p in range(len(automaton.reads)) if p in reachable[p]]
    for p in loops:
        for q in loops:
            dropped = q in automaton.accepting or automaton.atomic[p] - automaton.atomic[q]
            if p != q and q in reachable[p] and not dropped:
                yield p, q


def _polynomial(automaton: Automaton, p: int, q: int) -> bool:
    """Whether some word leads from p to p, from p to q, and from q to q.

    A step after a line feed needs one before it; before the first character of the word is its last one, because the
    word is repeated.
    """
    successors = _successors(len(automaton.reads), automaton.steps)
    begin: _Triple = (p, p, q, None, False)
    waiting, seen = deque([begin]), {begin}
    while waiting:
        a, b, c, newline, wanted = waiting.popleft()
        for (a2, f), (b2, g), (c2, h) in _steps(successors, a, b, c):
            common = automaton.reads[a2] & automaton.reads[b2] & automaton.reads[c2]
            after_line = LINE in f | g | h
            if not common or (after_line and newline is False):
                continue
            want = wanted or (after_line and newline is None)
            for is_newline in (True, False):
                if not common & (_NEWLINE if is_newline else ~_NEWLINE):
                    continue
                if (a2, b2, c2) == (p, q, q) and (is_newline or not want):
                    return True
                state: _Triple = (a2, b2, c2, is_newline, want)
                if state not in seen:
                    seen.add(state)
                    waiting.append(state)
    return False


def _steps(
    successors: list[list[tuple[int, Flags]]], a: int, b: int, c: int
) -> Iterator[tuple[tuple[int, Flags], tuple[int, Flags], tuple[int, Flags]]]:
    return ((x, y, z) for x in successors[a] for y in successors[b] for z in successors[c])
