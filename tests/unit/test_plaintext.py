# SPDX-License-Identifier: BSD-2-Clause
"""Output of a host is displayed and never interpreted."""

from hypothesis import given
from hypothesis import strategies as st

from perfweb.plaintext import LONGEST, plain


def test_escape_sequences_are_shown_and_not_obeyed() -> None:
    assert plain("\x1b[2Jgone\x9b31m\a\rover\u202e\0") == "?[2Jgone?31m??over??"


def test_lines_letters_and_markup_stay() -> None:
    assert plain("a <b>\n\tΔ 😀") == "a <b>\n\tΔ 😀"


@given(st.text())
def test_any_text_can_be_stored(text: str) -> None:
    kept = plain(text)
    assert len(kept) <= LONGEST
    kept.encode()
    assert not set(kept) & set(map(chr, (*range(9), *range(11, 32), *range(127, 160))))
