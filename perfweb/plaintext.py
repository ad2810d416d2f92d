# SPDX-License-Identifier: BSD-2-Clause
"""Making what tools and hosts say fit for a text column."""

import unicodedata

LONGEST = 4000


def plain(text: str) -> str:
    """`text` at most LONGEST characters long and without control characters, which PostgreSQL cannot store (NUL, lone
    surrogates), terminals obey (escape sequences), or readers are misled by (changes of the direction).
    """
    short = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    return "".join("?" if unicodedata.category(sign)[0] == "C" and sign not in "\n\t" else sign for sign in short)
