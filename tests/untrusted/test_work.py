# SPDX-License-Identifier: BSD-2-Clause
"""No parser of untrusted input does more than linear work, and none raises an undeclared exception.

Each hostile text is doubled four times. The work is the number of executed lines of Python (lines.py): each iteration
of a loop, a comprehension and a generator counts, in the standard library as well, and the number is the same on every
machine. The work of a single line in C is not counted: test_patterns.py covers the regular expressions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.untrusted import metering
from tests.untrusted.hostile import GENERIC, RUNS, Generator, Parser, call
from tests.untrusted.lines import executed
from tests.untrusted.metering import METER
from tests.untrusted.parsers import PARSERS

SHORTEST = 200
SIZES = [SHORTEST << doubling for doubling in range(5)]
GROWTH = 2.7
"""Max ratio of the work of a text to that of one half as long: twice is linear work, four times quadratic work. It
counts if two doublings in a row exceed it, because a text that is cut elsewhere may be valid and take another path.
"""
SPARE = 500
"""Further lines that may be executed, because a longer text may reach code that a shorter one does not."""
SPARE_CHARACTERS = 20_000


def work(parser: Parser, text: str) -> tuple[int, int]:
    """The lines of Python that a call executes, and the characters that operations in C read and write for them."""
    METER.characters = 0
    lines = executed(lambda: call(parser, text), without=metering.__file__)
    return lines, METER.characters


def superlinear(parser: Parser, generate: Generator) -> list[tuple[int, int]]:
    """The work at the three largest sizes, if lines or characters grow faster than the text at both doublings; else
    empty.

    Counting makes a call slower, so the largest text is counted only if the first doubling is suspicious.
    """
    shortest, _, *counted, largest = SIZES
    call(parser, generate(shortest))
    done = [work(parser, generate(size)) for size in counted]
    if not any(_grow(*done)):
        return []
    done.append(work(parser, generate(largest)))
    twice = zip(_grow(*done[:2]), _grow(*done[1:]), strict=True)
    return done if any(first and second for first, second in twice) else []


def _grow(before: tuple[int, int], after: tuple[int, int]) -> tuple[bool, bool]:
    """Whether lines grow faster than the text, and whether characters do."""
    lines, characters = zip(before, after, strict=True)
    return _grows(*lines, SPARE), _grows(*characters, SPARE_CHARACTERS)


def _grows(before: int, after: int, spare: int) -> bool:
    return after > GROWTH * before + spare


# These two come first, because every call is slower once operations are counted.
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_only_declared_errors_are_raised_by_hostile_texts(parser: Parser) -> None:
    for generate in {**GENERIC, **parser.texts}.values():
        for size in (*SIZES[:2], SIZES[-1]):
            call(parser, generate(size))


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


@pytest.fixture(scope="module")
def every_operation() -> Iterator[None]:
    """Count the work of the service and the libraries under it in C."""
    with metering.metered(metering.modules()):
        yield


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_work_is_linear(parser: Parser, every_operation: None) -> None:
    texts = {**GENERIC, **parser.texts}
    for generate in list(texts.values())[:3]:
        call(parser, generate(SHORTEST))  # imports, caches
    assert not {name: done for name, generate in texts.items() if (done := superlinear(parser, generate))}


def test_quadratic_work_is_noticed() -> None:
    def quadratic(text: str) -> int:
        return sum(letter == other for letter in text for other in text[: len(text) // 16])

    assert superlinear(Parser("", quadratic), lambda length: "a" * length)
    assert not superlinear(Parser("", lambda text: [letter.upper() for letter in text]), lambda length: "a" * length)


def _rest_of_a_text(text: str) -> None:
    while text:
        text = text[1:]


def _longer_text(text: str) -> str:
    longer = ""
    for letter in text:
        longer += letter
    return longer


def _at_the_beginning(text: str) -> list[str]:
    letters: list[str] = []
    for letter in text:
        letters.insert(0, letter)
    return letters


def _from_the_beginning(text: str) -> None:
    letters = list(text)
    while letters:
        letters.pop(0)


def _known_letters(text: str) -> list[bool]:
    seen: list[int] = []
    for place, _ in enumerate(text):
        if place not in seen:
            seen.append(place)
    return [len(seen) > 0]


def _searched_again(text: str) -> int:
    return sum(text.find("b") for _ in text)


def _replaced_again(text: str) -> None:
    for _ in text:
        text.replace("a", "b")


def _encoded_again(text: str) -> None:
    for _ in text:
        f"{text}x".encode().decode().split("b")


@pytest.mark.parametrize(
    "parse",
    [
        *(_rest_of_a_text, _longer_text, _at_the_beginning, _from_the_beginning, _known_letters, _searched_again),
        *(_replaced_again, _encoded_again),
    ],
    ids=lambda parse: parse.__name__,
)
def test_quadratic_work_in_c_is_noticed(parse: Callable[[str], object]) -> None:
    with metering.metered([sys.modules[__name__]]):
        assert superlinear(Parser("", parse), lambda length: "a" * length)


def test_linear_work_in_c_is_accepted() -> None:
    with metering.metered([sys.modules[__name__]]):
        assert not superlinear(Parser("", _linear), lambda length: "ab" * (length // 2))


def _linear(text: str) -> list[str]:
    place, found = 0, []
    while (end := text.find("b", place)) >= 0:
        found.append(text[place:end])
        place = end + 1
    return sorted("".join(found).replace("a", "c").splitlines())
