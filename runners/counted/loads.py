# SPDX-License-Identifier: BSD-2-Clause
"""The loads of a guest, in the order in which guest/loads.c runs them, and their units."""

from __future__ import annotations

import difflib

from runners.counted.errors import CountedError

LABEL = "counted."
"""The first word of all names of loads."""
UNITS = {
    "tcp.rr": "round trip",
    "udp.rr": "round trip",
    "tcp.stream": "write of 16 KB",
    "tcp.connect": "connection",
    "udp.forward": "packet",
}
_PLACES = (
    "tcp.rr/local", "tcp.rr/routed", "udp.rr/local", "udp.rr/routed", "tcp.stream/local", "tcp.stream/routed",
    "tcp.connect/local", "udp.forward/routed",
)  # fmt: skip
NAMES = tuple(f"{LABEL}{place}/{family}" for place in _PLACES for family in ("ipv4", "ipv6"))


def unit(load: str) -> str:
    """Returns what one unit of a load is: of counted.tcp.rr/local/ipv4 a round trip."""
    return UNITS.get(load.partition("/")[0].removeprefix(LABEL), "unit")


def prefix(text: str) -> str:
    """Returns the beginning of names of loads, which a user may write without the first word.

    Raises CountedError if no name begins so.
    """
    whole = text if not text or text.startswith(LABEL) else f"{LABEL}{text}"
    if not any(name.startswith(whole) for name in NAMES):
        near = difflib.get_close_matches(whole, (*NAMES, *(LABEL + place for place in _PLACES)), 1, 0.0)[0]
        raise CountedError(f"no load has a name that begins with “{whole}” (did you mean {near}?)")
    return whole
