# SPDX-License-Identifier: BSD-2-Clause
"""The terms of docs/glossary.md, and the links from the first use of each on a page to its definition.

It scans headings and column heads of finished HTML, up to the first tag inside each. Row heads and links are left
alone, because they hold names that users gave.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from perfweb.manual import markdown
from perfweb.manual.documents import documents

NAME = "glossary"
LONGEST_TERM = 3
"""Max number of words of a term."""

_PLACE = re.compile(r"<(?:h[23]|th|dt)(?:>| [^<>]*>)[^<>]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9/-]*")


@dataclass(frozen=True)
class Term:
    """A term: `name` is its first spelling, which is its anchor."""

    name: str
    anchor: str
    definition: str


@cache
def terms() -> dict[str, Term]:
    """Return all terms by each of their spellings, in lower case."""
    found: dict[str, Term] = {}
    for names, definition in markdown.terms(documents()[NAME].tokens):
        spellings = names.split(", ")
        term = Term(spellings[0], markdown.term_anchor(names), definition)
        for spelling in spellings:
            found[spelling.lower()] = term
    return found


def with_definitions(html: str) -> SafeString:
    """Return the HTML with a link and a tooltip at the first use of each term."""
    seen: set[Term] = set()

    def link(match: re.Match[str]) -> str:
        tag, _, text = match[0].partition(">")
        return match[0] if 'scope="row"' in tag else f"{tag}>{_link_terms(text, seen)}"

    return mark_safe(_PLACE.sub(link, html))  # noqa: S308 (adds escaped text to finished HTML)


def _link_terms(text: str, seen: set[Term]) -> str:
    words = list(_WORD.finditer(text))
    parts, done, index = [], 0, 0
    while index < len(words):
        for count in range(min(LONGEST_TERM, len(words) - index), 0, -1):
            start, end = words[index].start(), words[index + count - 1].end()
            term = _find(text[start:end])
            if term and term not in seen:
                seen.add(term)
                parts += [text[done:start], _link(term, text[start:end])]
                done = end
            if term:
                index += count - 1
                break
        index += 1
    return "".join((*parts, text[done:]))


def _find(text: str) -> Term | None:
    """Return the term of a text in the singular or the plural."""
    known, key = terms(), text.lower()
    return known.get(key) or (known.get(key[:-1]) if key.endswith("s") else None)


def _link(term: Term, text: str) -> str:
    return format_html(
        '<span class="term"><a href="{}#{}" aria-describedby="tip-{}">{}</a>'
        '<span role="tooltip" id="tip-{}">{}</span></span>',
        reverse("manual:document", args=[NAME]),
        term.anchor,
        term.anchor,
        mark_safe(text),  # noqa: S308 (part of finished HTML)
        term.anchor,
        term.definition,
    )
