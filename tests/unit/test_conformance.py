# SPDX-License-Identifier: BSD-2-Clause
"""The clauses that a packetdrill script names."""

from __future__ import annotations

import pytest

from tests.stack.conformance import OWN, clauses


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
    for script in OWN.glob("rfc*.pkt"):
        number, clause = script.stem.split("-")[:2]
        assert f"RFC {number[3:]} {clause}" in list(clauses(script.read_text())), script.name
