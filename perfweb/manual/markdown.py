# SPDX-License-Identifier: BSD-2-Clause
"""Markdown to HTML by markdown-it-py: CommonMark and tables, with GitHub's anchors. HTML is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Heading:
    """A heading: 1 is the title's level; `anchor` is its id in the HTML."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Section:
    """A heading, and the text up to the next one without markup."""

    heading: Heading
    text: str


@dataclass(frozen=True)
class Outline:
    """A document without its markup; `summary` is its first paragraph."""

    title: str
    summary: str
    sections: list[Section]


@dataclass(frozen=True)
class Target:
    """The target of a link; `title` is that of a document, else empty."""

    address: str
    title: str = ""


@dataclass(frozen=True)
class Rendered:
    """The HTML of a document, and its headings below the title."""

    html: SafeString
    headings: list[Heading]


def parse(text: str) -> list[Token]:
    """Return the tokens of a text without the marks of its generators, `<!-- … -->` on a line."""
    lines = ("" if line.startswith("<!--") and line.endswith("-->") else line for line in text.splitlines())
    return _parser().parse("\n".join(lines))


def outline(tokens: Sequence[Token]) -> Outline:
    """Return title, first paragraph and sections."""
    headings = [heading for _token, heading in _headings(tokens)]
    texts = _texts(tokens)
    first = next((_plain(inline) for opened, inline in _pairs(tokens) if opened.type == "paragraph_open"), "")
    sections = [Section(heading, body) for heading, body in zip(headings, texts, strict=True)]
    return Outline(headings[0].text, first, sections)


def render(text: str, target: Callable[[str], Target], image: Callable[[str], str]) -> Rendered:
    """Return the HTML: `target` resolves each link, `image` maps each image to a path below STATIC_URL.

    A link whose text is the name of a file gets the title of its document instead.
    """
    tokens = parse(text)
    anchors = {id(token): heading for token, heading in _headings(tokens)}
    label = ""
    for token, following in pairwise([*_flat(tokens), Token("end", "", 0)]):
        if heading := anchors.get(id(token)):
            token.attrSet("id", heading.anchor)
            label = heading.text
        elif token.type == "table_open":
            token.meta["label"] = label
        elif token.type == "link_open":
            found = target(str(token.attrGet("href")))
            token.attrSet("href", found.address)
            if found.title and following.content.endswith(".md"):
                following.content = found.title
        elif token.type == "image":
            token.attrSet("src", static(image(str(token.attrGet("src")))))
            token.attrSet("loading", "lazy")
        elif token.type in {"th_open", "td_open"} and token.attrs.pop("style", None) == "text-align:right":
            token.attrSet("class", "number")
    _mark_terms(tokens)
    parser = _parser()
    html = parser.renderer.render(tokens, parser.options, {})
    return Rendered(mark_safe(html), list(anchors.values())[1:])  # noqa: S308 (the parser escapes what is not its own)


def term_anchor(term: str) -> str:
    """Return the id of a list item that begins with a bold term."""
    return f"term-{_slug(term)}"


def terms(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Return each list item `**term**: definition`, without markup."""
    found = [(_bold(inline), _plain(inline)) for _item, inline in _items(tokens)]
    return [(term, line.removeprefix(term).lstrip(": ")) for term, line in found if term]


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", lambda *_arguments: "</table></div>\n")
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    return parser


def _open_table(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    """Let a wide table scroll inside its own box, by keyboard too."""
    label = tokens[index].meta["label"]
    return format_html('<div class="scroll" tabindex="0" role="group" aria-label="Table: {}"><table>\n', label)


def _code(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    return format_html('<pre tabindex="0"><code>{}</code></pre>\n', tokens[index].content)


def _pairs(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Yield each opening token of a block with inline content, and that content."""
    for opened, inline in pairwise(tokens):
        if inline.type == "inline":
            yield opened, inline


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[Token, Heading]]:
    used: dict[str, int] = {}
    for opened, inline in _pairs(tokens):
        if opened.type == "heading_open":
            text = _plain(inline)
            anchor = _slug(text)
            number = used.setdefault(anchor, 0)
            used[anchor] += 1
            yield opened, Heading(int(opened.tag[1:]), text, f"{anchor}-{number}" if number else anchor)


def _texts(tokens: Sequence[Token]) -> list[str]:
    """Return the text below each heading."""
    found: list[list[str]] = []
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            found.append([])
        elif found and token.type == "inline" and tokens[index - 1].type != "heading_open":
            found[-1].append(_plain(token))
        elif found and token.type in {"fence", "code_block"}:
            found[-1].append(token.content)
    return ["\n".join(parts) for parts in found]


def _items(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    for item, opened, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if item.type == "list_item_open" and opened.type == "paragraph_open":
            yield item, inline


def _bold(inline: Token) -> str:
    """Return the bold text at the beginning of a line."""
    children = [child for child in inline.children or [] if child.type != "text" or child.content]
    if len(children) > 2 and children[0].type == "strong_open":
        return children[1].content
    return ""


def _mark_terms(tokens: Sequence[Token]) -> None:
    """Give each list item that begins with a bold term an id."""
    for item, inline in _items(tokens):
        if term := _bold(inline):
            item.attrSet("id", term_anchor(term))


def _flat(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or []


def _plain(inline: Token) -> str:
    """Return the text of an inline token without markup."""
    breaks = {"softbreak", "hardbreak"}
    return "".join(" " if child.type in breaks else child.content for child in inline.children or [])


def _slug(text: str) -> str:
    return _NOT_IN_ANCHORS.sub("", text.lower()).replace(" ", "-")
