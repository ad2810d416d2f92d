# SPDX-License-Identifier: BSD-2-Clause
"""The prose of a file: comments and messages of C, paragraphs of Markdown, with the line that each begins in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Text(NamedTuple):
    """A comment, message or paragraph, and the line of its file that it begins in."""

    line: int
    kind: str
    text: str


_C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_MARGIN = re.compile(r"^[ \t]*\*(?: |(?=\t)|$)", re.MULTILINE)
_FORMATTED = re.compile(r"^[ \t]*\t.*$", re.MULTILINE)
_WORDS = re.compile(r"[A-Za-z]{2,}")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_FENCE = re.compile(r"^(?:```.*?^```|(?: {4}|\t)[^\n]*$)", re.DOTALL | re.MULTILINE)


def _blank(match: re.Match[str]) -> str:
    """Spaces in the place of a match, so that lines keep their numbers."""
    return re.sub(r"[^\n]", " ", match.group())


def c_texts(source: str) -> Iterator[Text]:
    """Comments, without preformatted lines, and strings of at least three words."""
    for match in _C_TOKEN.finditer(source):
        token, line = match.group(), source.count("\n", 0, match.start()) + 1
        if token.startswith("/*"):
            body = _FORMATTED.sub(_blank, _MARGIN.sub("", token[2:-2]))
            if "SPDX-License-Identifier" not in body:
                yield Text(line, "comment", body)
        elif token.startswith("//"):
            yield Text(line, "comment", token[2:])
        elif token.startswith('"') and len(_WORDS.findall(token)) >= 3:
            yield Text(line, "message", token[1:-1].replace("\\n", "  "))


def markdown_texts(source: str) -> Iterator[Text]:
    """Paragraphs, list items, headings and cells of tables, without code."""
    source = _LINK.sub(r"\1", _CODE.sub("code", _FENCE.sub(_blank, source)))
    start, block = 1, ""
    for number, line in enumerate([*source.split("\n"), ""], 1):
        if line.startswith("|"):
            yield from (Text(number, "cell", cell) for cell in line.strip("|").split("|") if _WORDS.search(cell))
        elif not line.strip() or re.match(r"\s*(?:[-*#]|\d+\.) ?", line):
            if block.strip():
                yield Text(start, "paragraph", block)
            start, block = number, line.lstrip("#-* ")
        else:
            start, block = (number, line) if not block.strip() else (start, f"{block}\n{line}")
    if block.strip():
        yield Text(start, "paragraph", block)


READERS = {".c": c_texts, ".h": c_texts, ".md": markdown_texts}
"""How the prose of a file is found, by its suffix."""


def texts(path: Path) -> Iterator[Text]:
    """The prose of one file."""
    return READERS[path.suffix](path.read_text(encoding="utf-8"))


def files(path: Path) -> list[Path]:
    """The files below a path whose prose can be read."""
    return sorted(found for found in path.rglob("*") if found.suffix in READERS) if path.is_dir() else [path]
