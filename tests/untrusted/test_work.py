# SPDX-License-Identifier: BSD-2-Clause
"""No parser of untrusted input does more than linear work, and none raises what it does not declare.

Each hostile text is doubled four times.  The work is the number of lines of Python that are executed, counted with
sys.settrace(): each iteration of a loop, a comprehension and a generator counts, in the standard library as well, and
the number is the same on every machine.  What a single line does in C is not counted: test_patterns.py covers the
regular expressions.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.untrusted.hostile import GENERIC, RUNS, Generator
from tests.untrusted.parsers import PARSERS, Parser, call

SHORTEST = 200
SIZES = [SHORTEST << doubling for doubling in range(5)]
GROWTH = 2.7
"""How many times the work of a text half as long: twice for linear work, four times for quadratic work.  It counts
where two doublings in a row exceed it, because a text that is cut elsewhere may be valid and take another path.
"""
SPARE = 500
"""Lines that may be executed besides, since a longer text may reach what a shorter one does not."""


def work(parser: Parser, text: str) -> int:
    """The lines of Python that a call executes."""
    lines = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        call(parser, text)
    finally:
        sys.settrace(before)
    return lines


def superlinear(parser: Parser, generate: Generator) -> list[int]:
    """The work at the three largest sizes, where it grows faster than the text at both doublings; else nothing.

    Counting makes a call twenty times slower, so the largest text is counted only if the first doubling is suspicious.
    """
    *shorter, whole = (generate(size) for size in SIZES)
    for text in shorter[:-2]:
        call(parser, text)
    done = [work(parser, text) for text in shorter[-2:]]
    if not _grows(*done):
        call(parser, whole)
        return []
    done.append(work(parser, whole))
    return done if _grows(*done[-2:]) else []


def _grows(before: int, after: int) -> bool:
    return after > GROWTH * before + SPARE


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_work_is_linear_and_errors_are_declared(parser: Parser) -> None:
    for generate in list({**GENERIC, **parser.texts}.values())[:3]:
        call(parser, generate(SHORTEST))  # imports, caches
    texts = {**GENERIC, **parser.texts}
    found = {name: done for name, generate in texts.items() if (done := superlinear(parser, generate))}
    assert not found


def test_quadratic_work_is_noticed() -> None:
    def quadratic(text: str) -> int:
        return sum(letter == other for letter in text for other in text[: len(text) // 16])

    assert superlinear(Parser("", quadratic), lambda length: "a" * length)
    assert not superlinear(Parser("", lambda text: [letter.upper() for letter in text]), lambda length: "a" * length)


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(RUNS), st.integers(1, 30)), max_size=12), st.data())
def test_only_declared_errors_are_raised(parser: Parser, pieces: list[tuple[str, int]], data: st.DataObject) -> None:
    text = "".join(piece * times for piece, times in pieces)
    if parser.texts:
        made = data.draw(st.sampled_from(sorted(parser.texts)))
        whole = parser.texts[made](200)
        place = data.draw(st.integers(0, len(whole)))
        text = whole[:place] + text + whole[place:]
    call(parser, text)
