# SPDX-License-Identifier: BSD-2-Clause
"""The text of a patch as HTML, with marks for added and removed lines of its hunks."""

import re
from collections.abc import Iterator

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.ASCII)
_SHOWN = {"\r": "\N{SYMBOL FOR CARRIAGE RETURN}", "\f": "\N{SYMBOL FOR FORM FEED}"}
_KINDS = {"+": "added", "-": "removed"}


def marked(text: str) -> SafeString:
    """Every line as it is, with its invisible characters shown; only lines of a hunk are marked, because text around it
    begins with such signs, too.
    """
    lines = (
        f'<span class="{kind}">{escape(visible(line))}</span>' if kind else escape(visible(line))
        for line, kind in _lines(text)
    )
    return mark_safe("\n".join(lines))  # noqa: S308 (was escaped)


def visible(line: str) -> str:
    """A line whose characters without a glyph a reviewer sees: CR, which a page shows as a line end, and those that
    reorder or hide text (Unicode TR 36, section 2.3).
    """
    if line.replace("\t", "").isprintable():
        return line
    return "".join(
        sign if sign.isprintable() or sign == "\t" else _SHOWN.get(sign, f"<U+{ord(sign):04X}>") for sign in line
    )


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines with their kinds; the head of a hunk has the number of its lines."""
    old = new = 0
    for line in text.split("\n"):
        if old > 0 or new > 0:
            sign = line[:1]
            old -= sign not in {"+", "\\"}
            new -= sign not in {"-", "\\"}
            yield line, _KINDS.get(sign, "")
        elif head := _HUNK.match(line):
            old, new = (int(head[group] or 1) for group in (1, 2))
            yield line, "hunk"
        else:
            yield line, ""
