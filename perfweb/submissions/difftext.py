# SPDX-License-Identifier: BSD-2-Clause
"""The text of a patch as HTML, with marks for added and removed lines of its hunks."""

import re
from collections.abc import Iterator

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.ASCII)
_KINDS = {"+": "added", "-": "removed"}


def marked(text: str) -> SafeString:
    """Return every line unchanged; only lines of a hunk are marked, because other text may begin with such signs,
    too.
    """
    lines = (f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line) for line, kind in _lines(text))
    return mark_safe("\n".join(lines))  # noqa: S308 (was escaped)


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
