# SPDX-License-Identifier: BSD-2-Clause
"""Author, subject, message, diff and tree of mails of every kind are those that git makes of them.

`python -m tests.mails --trees --b4 1` prints the counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfweb.mail.messages import read_message
from tests.mails.comparison import RULES, compare, compare_b4, compare_trees, read_delivered, read_submitted
from tests.mails.corpus import Corpus, build


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return build(tmp_path_factory.mktemp("mails"), 1)


def test_mails_are_read_as_git_reads_them(corpus: Corpus) -> None:
    assert len(corpus.cases) >= 300
    findings = list(compare(corpus))
    assert {one.case.name: one.differing for one in findings if one.differing} == {}
    assert sum(one.refused for one in findings) < 5


def test_trees_are_those_of_git_am(corpus: Corpus) -> None:
    findings = list(compare_trees(corpus, each=9))
    assert {one.case.name: one.differing for one in findings if one.differing} == {}
    assert sum(one.refused for one in findings) < 5


def test_mails_are_read_as_b4_makes_them_ready(corpus: Corpus) -> None:
    findings = list(compare_b4(corpus, each=30))
    assert {one.case.name: one.differing for one in findings if one.differing} == {}
    # b4 makes CR of files LF, replaces bytes that are not UTF-8, and drops the words above an attachment.
    assert sum(not (one.refused or one.apart) for one in findings) > len(findings) / 3


WAYS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "all": lambda head, body: _crlf(head) + _crlf(body),
    "not the header": lambda head, body: head + _crlf(body),
    "not the text": lambda head, body: _crlf(head) + body,
    "not a header of a relay": lambda head, body: b"Received: by relay.example\n" + _crlf(head) + _crlf(body),
    "not the line behind the header": lambda head, body: _crlf(head[:-1]) + b"\n" + _crlf(body),
    "not the last line": lambda head, body: _crlf(head) + _crlf(body)[:-2] + b"\n",
}
"""What a transport makes CR LF, of a mail's header with the empty line, and of its text."""


def _crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


@pytest.mark.parametrize("way", list(WAYS))
def test_line_ends_of_a_transport_change_nothing(corpus: Corpus, way: str) -> None:
    for case in corpus.cases:
        head, end, body = case.content.partition(b"\n\n")
        if b"\r" in case.content or not body.endswith(b"\n"):
            continue
        sent = WAYS[way](head + end, body)
        for read in (read_submitted, read_delivered):
            assert read(sent) == read(case.content), (case.name, read.__name__)


@pytest.mark.parametrize("way", list(WAYS))
def test_line_ends_of_a_transport_hide_no_request(way: str) -> None:
    head = b"Message-ID: <1@x>\nFrom: Ada <ada@example.org>\nSubject: [PATCH v2 0/2]\n net: x\nIn-Reply-To: <0@x>\n\n"
    body = b"Words.\n\nperf: tcp quick\n\n-- \n2.39\n"
    plain, found = (read_message(mail, RULES) for mail in (head + body, WAYS[way](head, body)))
    assert plain.request == found.request == "tcp quick"
    assert replace(found, mbox=b"") == replace(plain, mbox=b"")


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_other_draws(tmp_path: Path, seed: int) -> None:
    drawn = build(tmp_path, seed)
    findings = [*compare(drawn), *compare_trees(drawn)]
    assert {one.case.name: one.differing for one in findings if one.differing} == {}
