# SPDX-License-Identifier: BSD-2-Clause
"""Covering arrays: few combinations of choices in which all pairs, or triples, of choices occur.

The algorithm is the greedy one of Cohen, Dalal, Fredman and Patton (The AETG System, IEEE TSE 1997): one row after the
other, each starting with an uncovered tuple, and the best of some that were completed in different orders.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence

Row = dict[str, str]
Part = tuple[int, ...]  # some choices, ascending


class Covering:
    """Return rows that cover all possible tuples of choices.

    `factors` are the choices of each, the preferred one first; `strength` is the size of the tuples to cover; `refused`
    returns whether a row, or a part of one, is impossible, and stays true whatever is added.
    """

    def __init__(
        self, factors: Mapping[str, Sequence[str]], strength: int, refused: Callable[[Mapping[str, str]], bool]
    ) -> None:
        self.strength = min(strength, len(factors))
        self.refused = refused
        self.choices = [(name, value) for name, values in factors.items() for value in values]
        self.factors: dict[str, list[int]] = {name: [] for name in factors}
        for number, (name, _) in enumerate(self.choices):
            self.factors[name].append(number)
        # A dictionary keeps its order: every call gives the same rows.
        self.uncovered: dict[Part, None] = {
            part: None
            for names in itertools.combinations(factors, self.strength)
            for part in itertools.product(*(self.factors[name] for name in names))
        }

    def rows(self, candidates: int = 4, seed: int = 1) -> list[Row]:
        """Return all rows; each is the candidate that covers most, out of that many."""
        dice = random.Random(seed)
        rows: list[Row] = []
        while self.uncovered:
            part = next(iter(self.uncovered))
            tried = [row for _ in range(candidates) if (row := self._completed(part, dice)) is not None]
            if not tried:
                del self.uncovered[part]  # impossible in any row
                continue
            best = max(tried, key=lambda row: sum(part in self.uncovered for part in self._parts(row)))
            for covered in self._parts(best):
                self.uncovered.pop(covered, None)
            rows.append(self._row(sorted(best)))
        return rows

    def _row(self, chosen: Iterable[int]) -> Row:
        return dict(self.choices[number] for number in chosen)

    def _parts(self, chosen: Iterable[int]) -> Iterable[Part]:
        return itertools.combinations(sorted(chosen), self.strength)

    def _completed(self, part: Part, dice: random.Random) -> list[int] | None:
        """Complete a row with a choice of each factor; return it, or None."""
        row = self._row(part)
        rest = [name for name in self.factors if name not in row]
        dice.shuffle(rest)
        return None if self.refused(row) else self._extended(list(part), rest)

    def _extended(self, chosen: list[int], rest: Sequence[str]) -> list[int] | None:
        if not rest:
            return chosen
        for number in sorted(self.factors[rest[0]], key=lambda number: -self._gain(chosen, number)):
            longer = [*chosen, number]
            if not self.refused(self._row(longer)):
                whole = self._extended(longer, rest[1:])
                if whole is not None:
                    return whole
        return None

    def _gain(self, chosen: Sequence[int], number: int) -> int:
        """Return how many tuples a choice covers with the choices so far."""
        others = itertools.combinations(chosen, self.strength - 1)
        return sum(tuple(sorted((*some, number))) in self.uncovered for some in others)
