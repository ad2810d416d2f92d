# SPDX-License-Identifier: BSD-2-Clause
"""Untrusted text in Markdown: always as code, so that it has no markup and mentions no user."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from perfweb.plaintext import plain
from perfweb.verdicts.numbers import THIN_SPACE

_TICKS = re.compile("`+")


def code(text: str) -> str:
    """An untrusted word or line, also in a table."""
    line = " ".join(plain(text).split()).replace("|", "¦")
    if not line:
        return ""
    ticks = "`" * (_longest(line) + 1)
    return f"{ticks} {line} {ticks}" if "`" in line else f"{ticks}{line}{ticks}"


def block(text: str, most: int = 20_000) -> str:
    """Untrusted lines, or output of a program; a long text is cut, with a note."""
    shown = text.replace(THIN_SPACE, " ").rstrip("\n")
    if len(shown) > most:
        shown = shown[:most].rpartition("\n")[0] + "\n[the rest is left out]"
    fence = "`" * max(3, _longest(shown) + 1)
    return f"{fence}text\n{shown}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; untrusted cells have to come from code()."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def folded(summary: str, content: str, about: str = "") -> str:
    """A folded part. Its summary is HTML, in which Markdown is not read; `about` is untrusted."""
    words = " ".join(plain(about).split())
    more = f" <code>{escape(words)}</code>" if words else ""
    return f"<details><summary>{summary}{more}</summary>\n\n{content}\n\n</details>"


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
