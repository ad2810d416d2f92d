# SPDX-License-Identifier: BSD-2-Clause
"""The beginning of the names of loads, as a user writes it."""

from __future__ import annotations

import difflib

from perfweb.counted.loads import LABEL, NAMES, PLACES
from runners.counted.errors import CountedError


def prefix(text: str) -> str:
    """Returns the beginning of names of loads, which a user may write without the first word.

    Raises CountedError if no name begins so.
    """
    whole = text if not text or text.startswith(LABEL) else f"{LABEL}{text}"
    if not any(name.startswith(whole) for name in NAMES):
        near = difflib.get_close_matches(whole, (*NAMES, *(LABEL + place for place in PLACES)), 1, 0.0)[0]
        raise CountedError(f"no load has a name that begins with “{whole}” (did you mean {near}?)")
    return whole
