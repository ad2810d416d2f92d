# SPDX-License-Identifier: BSD-2-Clause
"""The check of prose finds planted words and long sentences, in the right line, and nothing in code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose.__main__ import main
from tests.prose.check import FOLDERS, ROOT, check, words
from tests.prose.sample import draw

C_SOURCE = """\
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues a packet.
 *
 *	told	a preformatted line is not checked
 *
 * Whoever sends it is
 * told so.
 */
int told;	/* who owns it */
const char *text = "somebody says nothing";
"""

MARKDOWN = """\
# Heading

A paragraph with `told` in code
and somebody in its second line.

    told in a block of code

| cell | whoever |
"""


def found(tmp_path: Path, name: str, text: str) -> list[tuple[int, str]]:
    """Line and word of each finding."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    wrong, _ = check([path])
    return sorted({(finding.line, finding.what.split('"')[1].lower()) for finding in wrong})


def test_comments_and_messages_of_c(tmp_path: Path) -> None:
    assert found(tmp_path, "a.c", C_SOURCE) == [
        (7, "whoever"),
        (8, "told"),
        (10, "who"),
        (11, "says"),
        (11, "somebody"),
    ]


def test_paragraphs_and_cells_of_markdown(tmp_path: Path) -> None:
    assert found(tmp_path, "a.md", MARKDOWN) == [(4, "somebody"), (8, "whoever")]


def test_a_finding_names_file_line_and_replacement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.h"
    path.write_text("/* The stack is told. */\n", encoding="utf-8")
    assert main([str(path)]) == 1
    assert f'{path}:1: "told": use "reported"' in capsys.readouterr().out


def test_long_sentences_are_listed_and_do_not_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.md"
    path.write_text("Short.\n\nLong" + " word" * 30 + ".\n", encoding="utf-8")
    assert main([str(path)]) == 0
    assert f"{path}:3: a sentence of 31 words" in capsys.readouterr().out


def test_a_word_does_not_match_inside_another(tmp_path: Path) -> None:
    assert found(tmp_path, "a.c", "/* The untold story of a tell-tale. */\n") == []


def test_every_word_has_a_replacement() -> None:
    assert words()
    assert all(replacement for _, _, replacement in words())


def test_every_folder_exists() -> None:
    assert [folder for folder in FOLDERS if not (ROOT / folder).exists()] == []


def test_a_draw_depends_on_its_seed_only(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text("".join(f"/* This is comment number {n}. */\n" for n in range(20)), encoding="utf-8")
    assert draw([path], 1, 5) == draw([path], 1, 5) != draw([path], 2, 5)
    assert len(draw([path], 1, 50)) == 20
