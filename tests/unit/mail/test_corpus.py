# SPDX-License-Identifier: BSD-2-Clause
"""Author, subject, message, diff and tree of mails of every kind are those that git makes of them.

`python -m tests.mails --trees --b4 1` prints the counts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mails.comparison import compare, compare_b4, compare_trees
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


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_other_draws(tmp_path: Path, seed: int) -> None:
    drawn = build(tmp_path, seed)
    findings = [*compare(drawn), *compare_trees(drawn)]
    assert {one.case.name: one.differing for one in findings if one.differing} == {}
