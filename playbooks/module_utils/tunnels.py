# SPDX-License-Identifier: BSD-2-Clause
"""Tunnels between left and the device under test, by BSD's names of the kinds: inner and outer addresses.

The outer protocol is IPv4, between the first data links of both hosts. The inner addresses are those reserved for
benchmarks by RFC 2544 (see RFC 6890) and RFC 5180. Each kind has its own networks, so that an address shows whether a
packet travels in a tunnel.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

INTERFACE = "perfweb0"
"""The name of a tunnel interface on Linux; the kernel itself makes gre0 and sit0."""


@dataclass(frozen=True)
class Tunnel:
    """A kind of tunnel: its type for ip(8), its kernel module, the bytes of its outer headers, and the number of its
    networks.
    """

    kind: str
    linux: Sequence[str]
    module: str
    overhead: int
    network: int

    def address(self, role: str) -> str:
        """The inner IPv4 address of an end with prefix length; `role` is left or dut."""
        return f"198.18.{self.network}.{_NUMBERS[role]}/30"

    def address6(self, role: str) -> str:
        """The inner IPv6 address of an end with prefix length."""
        return f"2001:2:0:{self.network}::{_NUMBERS[role]}/64"


_NUMBERS = {"left": 1, "dut": 2}
TUNNELS = {
    # IP in IP, RFC 2003 and 4213. Linux's ipip carries IPv4 alone; a sit of this mode carries both families, as gif
    # does.
    "gif": Tunnel("gif", ("sit", "mode", "any"), "sit", 20, 0),
    # RFC 2784, without key, checksum and sequence numbers.
    "gre": Tunnel("gre", ("gre",), "ip_gre", 24, 1),
}


def overhead(address: str) -> int:
    """Returns the bytes that the outer headers add to a packet for an address; 0 if it is not in a tunnel."""
    for tunnel in TUNNELS.values():
        for inside in (tunnel.address("left"), tunnel.address6("left")):
            if ipaddress.ip_address(address) in ipaddress.ip_interface(inside).network:
                return tunnel.overhead
    return 0
