# SPDX-License-Identifier: BSD-2-Clause
"""Search in the sections of all documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from django.urls import reverse

from perfweb.manual.documents import Document, documents
from perfweb.manual.markdown import Section

EXCERPT = 160
"""Characters of an excerpt."""
_WORD = re.compile(r"[a-z][a-z0-9_]{3,31}", re.ASCII)


@dataclass(frozen=True)
class Found:
    """A section: its title, its address, and the text around the first word."""

    title: str
    address: str
    excerpt: str


def sections(words: list[str]) -> list[Found]:
    """Return the sections that contain all words in any case, those with a word in the heading first."""
    wanted = [word.lower() for word in words]
    hits = [(document, section) for document, section in _all() if _contains(document, section, wanted)]
    hits.sort(key=lambda hit: not any(word in hit[1].heading.text.lower() for word in wanted))
    return [_found(document, section, wanted[0]) for document, section in hits]


@cache
def vocabulary() -> frozenset[str]:
    """Return the words of all documents in lower case; these do not change while the service runs."""
    return frozenset(
        word for _, section in _all() for word in _WORD.findall(f"{section.heading.text}\n{section.text}".lower())
    )


def _all() -> Iterator[tuple[Document, Section]]:
    for document in documents().values():
        for section in document.outline.sections:
            yield document, section


def _contains(document: Document, section: Section, words: list[str]) -> bool:
    text = f"{document.outline.title}\n{section.heading.text}\n{section.text}".lower()
    return all(word in text for word in words)


def _found(document: Document, section: Section, word: str) -> Found:
    title, heading = document.outline.title, section.heading
    address = reverse("manual:document", args=[document.name])
    start = max(0, section.text.lower().find(word) - EXCERPT // 3)
    excerpt = " ".join(section.text[start : start + EXCERPT].split())
    if heading.level == 1:
        return Found(title, address, excerpt)
    return Found(f"{title}: {heading.text}", f"{address}#{heading.anchor}", f"… {excerpt}" if start else excerpt)
