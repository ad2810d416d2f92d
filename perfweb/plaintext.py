# SPDX-License-Identifier: BSD-2-Clause
"""Makes output of tools and hosts valid for a text column."""

import math
import unicodedata
from typing import Any

LONGEST = 4000


def plain(text: str) -> str:
    """Return `text` with at most LONGEST characters and without control characters: PostgreSQL cannot store some (NUL,
    lone surrogates), terminals execute some (escape sequences), and some mislead readers (direction changes).
    """
    short = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    return "".join("?" if unicodedata.category(sign)[0] == "C" and sign not in "\n\t" else sign for sign in short)


def shown(words: str, most: int = 80) -> str:
    """Return untrusted words for a message of one line: the first `most` characters, with ? for those not printable."""
    return "".join(sign if sign.isprintable() else "?" for sign in words[:most])


def storable(value: Any) -> Any:
    """Return a JSON value, or a text of any length, that PostgreSQL can store: NUL and lone surrogates become question
    marks, and numbers that JSON does not have (RFC 8259, section 6) become texts.
    """
    if isinstance(value, str):
        return value.replace("\0", "?").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {storable(str(name)): storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
