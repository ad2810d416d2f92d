# SPDX-License-Identifier: BSD-2-Clause
"""The files of scripts of packets: their cases, and the clauses that these name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stack.conformance import cases, grammar, table
from tests.stack.conformance.cases import clauses


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("// RFC 9293 3.8.4, 3.8.6.1: probes", ["RFC 9293 3.8.4", "RFC 9293 3.8.6.1"]),
        ("// (RFC 8257 sections 3.3 and 4.2)", ["RFC 8257 3.3", "RFC 8257 4.2"]),
        ("// RFC 9293 3.7.1, MUST-15: an MSS", ["RFC 9293 3.7.1", "RFC 9293 MUST-15"]),
        ("// RFC 1191 3, RFC 9293 3.7.1: 2 names", ["RFC 1191 3", "RFC 9293 3.7.1"]),
        ("+0 write(4, ..., 10) = 10 // RFC 2018 section 4.", ["RFC 2018 4"]),
        ("+0 < S 0:0(0) win 9293 // RFC 9293", []),
        ("RFC 9293 3.4", []),
    ],
)
def test_comments_name_clauses(text: str, named: list[str]) -> None:
    assert list(clauses(text)) == named


def test_each_script_of_an_rfc_names_its_clause() -> None:
    for case in cases.read_folder(table.OWN):
        if case.name.startswith("rfc"):
            number = case.name.split("-")[0][3:]
            assert any(clause.startswith(f"RFC {number} ") for clause in case.clauses), case.name
        grammar.parse(case.lines)


def test_names_are_unique() -> None:
    names = [case.name for case in cases.read_folder(table.OWN)]
    assert len(names) == len(set(names))


def test_the_table_is_current_and_each_must_of_rfc_9293_has_a_row() -> None:
    assert table.PAGE.read_text(encoding="utf-8") == table.page(), "run ./dev conformance --table"
    found = table.by_clause()
    assert [must for must in table.MUSTS if (must in found) == (must in table.ELSEWHERE)] == []


def test_a_case_is_made_of_parts_names_and_sums(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "open.pkt").write_text("let SND 7\n")
    (tmp_path / "two.pkt").write_text(
        "include open\n== at-$word each word in a b // RFC 1 2: text\n+0 > . $SND:$(SND+3-1)(2) ack 1\n"
    )
    made = list(cases.read_folder(tmp_path))
    assert [case.name for case in made] == ["two/at-a", "two/at-b"]
    assert made[0].text == "// RFC 1 2: text\n+0 > . 7:9(2) ack 1\n"
    assert made[0].families == cases.FAMILIES


@pytest.mark.parametrize("line", ["$MISSING", "include missing", "let A", "== "])
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "wrong.pkt"
    path.write_text(f"+0 close(3) = 0\n{line}\n")
    with pytest.raises(ValueError, match="2"):
        list(cases.read(path))
