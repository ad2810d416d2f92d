# SPDX-License-Identifier: BSD-2-Clause
"""Making what tools and hosts say fit for a text column."""

import math
import unicodedata
from typing import Any

LONGEST = 4000


def plain(text: str) -> str:
    """`text` at most LONGEST characters long and without control characters, which PostgreSQL cannot store (NUL, lone
    surrogates), terminals obey (escape sequences), or readers are misled by (changes of the direction).
    """
    short = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    return "".join("?" if unicodedata.category(sign)[0] == "C" and sign not in "\n\t" else sign for sign in short)


def storable(value: Any) -> Any:
    """A JSON value, or a text of any length, that PostgreSQL can store: NUL and lone surrogates become question marks,
    and numbers that JSON does not have (RFC 8259, section 6) become texts.
    """
    if isinstance(value, str):
        return value.replace("\0", "?").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {storable(str(name)): storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
