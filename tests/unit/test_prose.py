# SPDX-License-Identifier: BSD-2-Clause
"""The check of prose finds planted words and long sentences, in the right line, and nothing in code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose import __main__ as prose
from tests.prose.__main__ import main
from tests.prose.check import FOLDERS, ROOT, TESTS, check, words
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

TEMPLATE = """\
<h1>The run<small> is told</small></h1>{# comment #}
<table aria-label="What it says"><tr><td><code>told</code></td></tr></table>
{{ owner|default:"somebody" }}
{% url 'told' %}
<p>A link <a href="told">for
whoever reads</a> it.</p>
"""

PYTHON = """\
'''A docstring about somebody.'''  # noqa: told
# The stack is told.
print(f"{told} for whoever reads it", "told")
raise ValueError("the plan " "says nothing")
told = 1
def run(who, least_told):
    self.asked_by = lambda strangers: told.said(said=who)
def tell(): pass
class File:
    def tell(self): pass
"""

SHELL = """\
#!/bin/sh
# A script that
# is told something.
#
# Nothing in the next block.
cat <<'TEXT'
told         a command that says nothing
             to somebody
TEXT
echo told # told
"""

PLAY = """\
---
# Whoever plays it.
- name: Tell the host
  told: "{{ told }}"
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


def test_texts_labels_and_strings_of_templates(tmp_path: Path) -> None:
    assert found(tmp_path, "a.html", TEMPLATE) == [(1, "told"), (2, "says"), (3, "somebody"), (6, "whoever")]


def test_comments_docstrings_messages_and_names_of_python(tmp_path: Path) -> None:
    assert found(tmp_path, "a.py", PYTHON) == [
        (1, "somebody"),
        (2, "told"),
        (3, "whoever"),
        (4, "says"),
        (5, "told"),
        (6, "least"),
        (6, "told"),
        (7, "asked"),
        (7, "asked by"),
        (7, "strangers"),
        (8, "tell"),
    ]


def test_comments_help_and_tasks_of_scripts_and_playbooks(tmp_path: Path) -> None:
    assert found(tmp_path, "a.sh", SHELL) == [(3, "told"), (7, "says"), (7, "told"), (8, "somebody")]
    assert found(tmp_path, "a.yml", PLAY) == [(2, "whoever"), (3, "tell")]
    (tmp_path / "a.sh").rename(tmp_path / "a")
    wrong, _ = check([tmp_path])
    assert {finding.path.name for finding in wrong} == {"a", "a.yml"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("templates/a.html", "<p>Nobody is told of it.</p>\n"),
        ("docs/howto/a.md", "# Title\n\nThe run is told so.\n"),
        ("perfweb/a.yaml", "# The run is told so.\n"),
        ("static/a.js", "// The page is told so.\n"),
        ("static/a.css", "/* The page is told so. */\n"),
        ("tests/test_a.py", "def test_what_is_told(): pass\n"),
        ("perfweb/a.py", 'parser.add_argument("--mail", help="address that is told of alerts")\n'),
    ],
)
def test_a_planted_word_fails_the_check_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    for folder in (*FOLDERS, *TESTS):
        (tmp_path / folder).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / folder).is_dir():
            (tmp_path / folder).mkdir(exist_ok=True)
        else:
            (tmp_path / folder).touch()
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    assert prose.main([]) == 0
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert prose.main([]) == 1


def test_some_kinds_of_texts_can_be_checked_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(PYTHON, encoding="utf-8")
    wrong, _ = check([path], {"message"})
    assert [finding.line for finding in wrong] == [3, 4]


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
    assert [folder for folder in (*FOLDERS, *TESTS) if not (ROOT / folder).exists()] == []


def test_a_draw_depends_on_its_seed_only(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text("".join(f"/* This is comment number {n}. */\n" for n in range(20)), encoding="utf-8")
    assert draw([path], 1, 5) == draw([path], 1, 5) != draw([path], 2, 5)
    assert len(draw([path], 1, 50)) == 20
