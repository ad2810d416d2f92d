# SPDX-License-Identifier: BSD-2-Clause
"""Text for terminals."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return lines with columns as wide as needed; the last column is not padded."""
    lines = [[plain(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def plain(text: str) -> str:
    """Return text without control characters of terminals; thin spaces become spaces."""
    spaced = text.replace("\N{NARROW NO-BREAK SPACE}", " ")
    return "".join("?" if unicodedata.category(sign)[0] == "C" and sign not in "\n\t" else sign for sign in spaced)


def moment(text: str | None) -> str:
    """Format a time of the API to the minute."""
    return text[:16].replace("T", " ") if text else "-"


def quantity(value: float, unit: str) -> str:
    """Format a value with five digits and its unit; bits and bytes with SI prefixes."""
    factor, prefix = 1.0, ""
    if unit in {"bits/s", "bytes/s"}:
        factor, prefix = next((pair for pair in _PREFIXES if abs(value) >= pair[0]), (1.0, ""))
    return f"{value / factor:,.5g} {prefix}{unit}"


def mark(origin: str) -> str:
    """Return what stands after the name of a testbed or branch: the origin of its results unless they are measured."""
    return "" if origin == "measured" else f" ({origin})"
