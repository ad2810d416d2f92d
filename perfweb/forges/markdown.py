# SPDX-License-Identifier: BSD-2-Clause
"""Text of others in Markdown: it stands in code and nowhere else, where it is neither markup nor calls anybody."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from perfweb.plaintext import plain
from perfweb.verdicts.numbers import THIN_SPACE

_TICKS = re.compile("`+")


def code(text: str) -> str:
    """A word or a line of somebody else's, also within a table."""
    line = " ".join(plain(text).split()).replace("|", "¦")
    if not line:
        return ""
    ticks = "`" * (_longest(line) + 1)
    return f"{ticks} {line} {ticks}" if "`" in line else f"{ticks}{line}{ticks}"


def block(text: str, most: int = 20_000) -> str:
    """Lines of somebody else's, or of a program's; the end of a long text is left out, and that is said."""
    shown = text.replace(THIN_SPACE, " ").rstrip("\n")
    if len(shown) > most:
        shown = shown[:most].rpartition("\n")[0] + "\n[the rest is left out]"
    fence = "`" * max(3, _longest(shown) + 1)
    return f"{fence}text\n{shown}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells of others have to come from code()."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def folded(summary: str, content: str, about: str = "") -> str:
    """What is shown when it is asked for. A summary is HTML, where no Markdown is read; `about` is of somebody else."""
    words = " ".join(plain(about).split())
    more = f" <code>{escape(words)}</code>" if words else ""
    return f"<details><summary>{summary}{more}</summary>\n\n{content}\n\n</details>"


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
