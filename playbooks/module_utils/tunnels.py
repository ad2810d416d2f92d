# SPDX-License-Identifier: BSD-2-Clause
"""Tunnels between left and the device under test, by the names that BSD gives their kinds: what is inside and outside.

Outside is IPv4, from the one's first data link to the other's. The addresses inside are those that are set aside for
benchmarks, by RFC 2544 (as RFC 6890 has it) and RFC 5180; each kind has networks of its own, so that an address says
whether a packet travels in a tunnel.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

INTERFACE = "perfweb0"
"""What a tunnel is called on Linux; the kernel itself makes interfaces gre0 and sit0."""


@dataclass(frozen=True)
class Tunnel:
    """A kind: how Linux is asked for one, the module that makes it, how many bytes an outer packet is longer, and the
    number of its networks.
    """

    kind: str
    linux: Sequence[str]
    module: str
    overhead: int
    network: int

    def address(self, role: str) -> str:
        """Of an end inside the tunnel, IPv4 with prefix length; `role` is left or dut."""
        return f"198.18.{self.network}.{_NUMBERS[role]}/30"

    def address6(self, role: str) -> str:
        """The same of IPv6."""
        return f"2001:2:0:{self.network}::{_NUMBERS[role]}/64"


_NUMBERS = {"left": 1, "dut": 2}
TUNNELS = {
    # IP in IP, RFC 2003 and 4213. Linux's ipip carries IPv4 alone; a sit of this mode carries both families, as gif.
    "gif": Tunnel("gif", ("sit", "mode", "any"), "sit", 20, 0),
    # RFC 2784, without key, sum and sequence numbers.
    "gre": Tunnel("gre", ("gre",), "ip_gre", 24, 1),
}


def overhead(address: str) -> int:
    """How many bytes a packet to an address is longer outside of its tunnel; 0 for one that leads through none."""
    for tunnel in TUNNELS.values():
        for inside in (tunnel.address("left"), tunnel.address6("left")):
            if ipaddress.ip_address(address) in ipaddress.ip_interface(inside).network:
                return tunnel.overhead
    return 0
