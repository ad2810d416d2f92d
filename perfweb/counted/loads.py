# SPDX-License-Identifier: BSD-2-Clause
"""The loads of a guest, in the order in which runners/counted/guest/loads.c runs them, and their units."""

LABEL = "counted."
"""The first word of all names of loads."""
UNITS = {
    "tcp.rr": "round trip",
    "udp.rr": "round trip",
    "tcp.stream": "write of 16 KB",
    "tcp.connect": "connection",
    "udp.forward": "packet",
}
PLACES = (
    "tcp.rr/local", "tcp.rr/routed", "udp.rr/local", "udp.rr/routed", "tcp.stream/local", "tcp.stream/routed",
    "tcp.connect/local", "udp.forward/routed",
)  # fmt: skip
NAMES = tuple(f"{LABEL}{place}/{family}" for place in PLACES for family in ("ipv4", "ipv6"))


def is_counted(test: str) -> bool:
    """Return whether a test is a load of this lane."""
    return test.startswith(LABEL)


def unit(load: str) -> str:
    """Return what one unit of a load is: of counted.tcp.rr/local/ipv4 a round trip."""
    return UNITS.get(load.partition("/")[0].removeprefix(LABEL), "unit")
