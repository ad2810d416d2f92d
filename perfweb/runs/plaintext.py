# SPDX-License-Identifier: BSD-2-Clause
"""Making what tools and hosts say fit for a text column."""

LONGEST = 4000


def plain(text: str) -> str:
    """`text` without what PostgreSQL cannot store (NUL, lone surrogates) and at most LONGEST characters long."""
    storable = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
    return storable if len(storable) <= LONGEST else storable[: LONGEST - 3] + "..."
