# SPDX-License-Identifier: BSD-2-Clause
"""The other end of a tunnel, for kernels without such devices: `tunnel_peer.py KIND OURS THEIRS [KEY]`.

KIND is gif or gre. Packets of the TUN device tun0 leave as raw packets of the kernel to THEIRS, and the reverse,
written independently from RFC 2003, RFC 4213, RFC 2473, RFC 2784 and RFC 2890.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import sys

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
IP_MTU_DISCOVER, IP_PMTUDISC_DONT = 10, 0
IPIP, GRE = 4, 47
ETHERTYPES = {4: 0x0800, 6: 0x86DD}
GRE_KEY = 0x2000


def protocols(kind: str) -> dict[int, int]:
    """The protocol of an outer packet, by the version of IP inside."""
    return {4: GRE, 6: GRE} if kind == "gre" else {4: IPIP, 6: socket.IPPROTO_IPV6}


def serve(kind: str, ours: str, theirs: str, key: int | None) -> None:
    """Forward packets for ever."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"tun0", IFF_TUN | IFF_NO_PI))
    family = socket.AF_INET6 if ":" in ours else socket.AF_INET
    raw: dict[int, socket.socket] = {}
    for protocol in set(protocols(kind).values()):
        raw[protocol] = socket.socket(family, socket.SOCK_RAW, protocol)
        raw[protocol].bind((ours, 0))
        if family == socket.AF_INET:
            raw[protocol].setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT)
    flags = 0 if key is None else GRE_KEY
    tail = b"" if key is None else struct.pack("!I", key)
    print("up", flush=True)
    arrived = {sock.fileno(): sock for sock in raw.values()}
    while True:
        for ready in select.select([tun, *arrived], [], [])[0]:
            if ready == tun:
                packet = os.read(tun, 65536)
                version = packet[0] >> 4
                header = struct.pack("!HH", flags, ETHERTYPES[version]) + tail if kind == "gre" else b""
                raw[protocols(kind)[version]].sendto(header + packet, (theirs, 0))
                continue
            packet, address = arrived[ready].recvfrom(65536)
            if family == socket.AF_INET:
                packet = packet[(packet[0] & 15) * 4 :]
            if kind == "gre":
                got = struct.unpack("!HH", packet[:4])
                assert got[0] == flags and packet[4 : 4 + len(tail)] == tail, packet[:8]  # noqa: PT018
                packet = packet[4 + len(tail) :]
                assert got[1] == ETHERTYPES[packet[0] >> 4], packet[:8]
            if address[0] == theirs:
                os.write(tun, packet)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else None)
