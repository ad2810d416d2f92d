# SPDX-License-Identifier: BSD-2-Clause
"""Finds words of `words.txt`, and sentences of too many words, in the prose of files."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.prose.texts import KINDS, Text, files, texts

ROOT = Path(__file__).resolve().parents[2]
WORDS = Path(__file__).with_name("words.txt")
SENTENCE_WORDS = 30
"""The max number of words of a sentence."""

FOLDERS = (
    "stack/api", "stack/boot", "stack/dev", "stack/kern", "stack/machine", "stack/net", "stack/netinet",
    "stack/netinet6", "stack/tools", "stack/tests", "stack/README.md",
    "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs",
    "perfweb", "playbooks", "runners", "dev", "docker", "static", "templates",
)  # fmt: skip
"""Files and folders whose texts are all checked by default, relative to the root of the project."""
TESTS = ("tests",)
"""Folders of which messages are not checked by default, because they are data of tests."""


class Finding(NamedTuple):
    """A word to replace, or a sentence to split."""

    path: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


@cache
def words() -> list[tuple[re.Pattern[str], str, str]]:
    """Return the pattern, the word, and the replacement of each word."""
    found = []
    for line in WORDS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            word, replacement = line.split("\t")
            phrase = r"\s+".join(re.escape(part) for part in word.lstrip("^_").split())
            start = r"(?:\A\s*|[.!?]\s+)" if word.startswith("^") else r"(?<![\w'-])"
            found.append((re.compile(rf"{start}(?P<word>{phrase})(?![\w'-])", re.IGNORECASE), word, replacement))
    return found


def wrong_words(path: Path, text: Text) -> Iterator[Finding]:
    """The words of a text that the list replaces."""
    for pattern, word, replacement in words():
        if word[0] == ("^" if text.kind == "name" else "_"):
            continue
        for match in pattern.finditer(text.text):
            line = text.line + text.text.count("\n", 0, match.start("word"))
            yield Finding(path, line, f'"{match["word"]}": use {replacement}')


def long_sentences(path: Path, text: Text) -> Iterator[Finding]:
    """The sentences of a text that should be split."""
    start = 0
    for end in [*(match.end() for match in re.finditer(r"[.!?:;][)\"']?(?=\s)|\n\s*\n", text.text)), len(text.text)]:
        sentence = text.text[start:end]
        count = len(re.findall(r"\S*[A-Za-z]\S*", sentence))
        if count > SENTENCE_WORDS:
            line = text.line + text.text.count("\n", 0, start + len(sentence) - len(sentence.lstrip()))
            yield Finding(path, line, f"a sentence of {count} words: {' '.join(sentence.split()[:8])} …")
        start = end


def check(paths: Iterable[Path], kinds: Container[str] = KINDS) -> tuple[list[Finding], list[Finding]]:
    """Words to replace and sentences to split in the texts of some kinds, in files and folders."""
    wrong: list[Finding] = []
    long: list[Finding] = []
    for path in paths:
        for file in files(path):
            shown = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
            for text in (text for text in texts(file) if text.kind in kinds):
                wrong += wrong_words(shown, text)
                long += long_sentences(shown, text)
    return wrong, long
