# SPDX-License-Identifier: BSD-2-Clause
"""Segments as bytes: RFC 791, RFC 8200, RFC 9293 section 3.1, and the errors of RFC 792 and RFC 4443."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

BITS = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16, "U": 32, "E": 64, "W": 128, "A": 256}
ECN = {"noecn": 0, "ect1": 1, "ect0": 2, "ce": 3}
TCP, ICMP, ICMP6 = 6, 1, 58

# The name of an error in a script: type and code in IPv4 and in IPv6.
ERRORS = {
    "unreachable net_unreachable": ((3, 0), (1, 0)),
    "unreachable host_unreachable": ((3, 1), (1, 3)),
    "unreachable protocol_unreachable": ((3, 2), (4, 1)),
    "unreachable port_unreachable": ((3, 3), (1, 4)),
    "unreachable frag_needed": ((3, 4), (2, 0)),
    "unreachable source_route_failed": ((3, 5), (1, 5)),
    "unreachable admin_prohibited": ((3, 13), (1, 1)),
    "time_exceeded ttl": ((11, 0), (3, 0)),
    "time_exceeded reassembly": ((11, 1), (3, 1)),
    "parameter_problem": ((12, 0), (4, 0)),
    "source_quench": ((4, 0), (1, 0)),
}


@dataclass
class Segment:
    """A TCP segment with the fields of its IP header; `options` are bytes, `doff` None as their length requires."""

    source: str
    target: str
    sport: int
    dport: int
    seq: int
    ack: int
    flags: int
    window: int
    urgent: int = 0
    options: bytes = b""
    payload: bytes = b""
    tos: int = 0
    ttl: int = 64
    doff: int | None = None
    bad_sum: bool = False
    ip_options: bytes = b""
    at: float = field(default=0.0, compare=False)


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packed(address: str) -> bytes:
    """An IPv4 or IPv6 address."""
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def datagram(
    source: str, target: str, protocol: int, payload: bytes, tos: int = 0, ttl: int = 64, options: bytes = b""
) -> bytes:
    """An IP datagram; options only with IPv4."""
    addresses = packed(source) + packed(target)
    if ":" in target:
        return struct.pack("!IHBB", 6 << 28 | tos << 20, len(payload), protocol, ttl) + addresses + payload
    length = 20 + len(options)
    words = struct.pack("!BBHHHBBH", 0x40 | length // 4, tos, length + len(payload), 1, 0, ttl, protocol, 0)
    header = words + addresses + options
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def _pseudo(source: str, target: str, protocol: int, length: int) -> bytes:
    return packed(source) + packed(target) + struct.pack("!II", length, protocol)


def encode(segment: Segment) -> bytes:
    """The datagram of a segment."""
    options = segment.options + b"\0" * (-len(segment.options) % 4)
    doff = segment.doff if segment.doff is not None else 5 + len(options) // 4
    header = struct.pack(
        "!HHIIHHHH", segment.sport, segment.dport, segment.seq % 2**32, segment.ack % 2**32,
        doff << 12 | segment.flags, segment.window, 0, segment.urgent,
    )  # fmt: skip
    body = header + options + segment.payload
    total = checksum(_pseudo(segment.source, segment.target, TCP, len(body)) + body) ^ segment.bad_sum
    body = body[:16] + struct.pack("!H", total) + body[18:]
    return datagram(segment.source, segment.target, TCP, body, segment.tos, segment.ttl, segment.ip_options)


def error(name: str, mtu: int, about: bytes, source: str) -> bytes:
    """An ICMP error from the target of the datagram that it is about to `source`, which sent it."""
    six = about[0] >> 4 == 6
    kind, code = ERRORS[name][six]
    target = socket.inet_ntop(*((socket.AF_INET6, about[24:40]) if six else (socket.AF_INET, about[16:20])))
    body = struct.pack("!BBHI", kind, code, 0, mtu) + about
    protocol = ICMP6 if six else ICMP
    total = checksum((_pseudo(target, source, protocol, len(body)) if six else b"") + body)
    return datagram(target, source, protocol, body[:2] + struct.pack("!H", total) + body[4:])


def decode(data: bytes) -> Segment | None:
    """The segment of a datagram; None for other protocols; ValueError for a checksum that is wrong."""
    six = data[0] >> 4 == 6
    if (data[6] if six else data[9]) != TCP:
        return None
    start = 40 if six else (data[0] & 15) * 4
    family, at, size = (socket.AF_INET6, 8, 16) if six else (socket.AF_INET, 12, 4)
    source, target = (socket.inet_ntop(family, data[at + i * size : at + (i + 1) * size]) for i in (0, 1))
    body = data[start:]
    if checksum(_pseudo(source, target, TCP, len(body)) + body) != 0 or (not six and checksum(data[:start]) != 0):
        raise ValueError("wrong checksum")
    sport, dport, seq, ack, bits, window, _, urgent = struct.unpack("!HHIIHHHH", body[:20])
    end = (bits >> 12) * 4
    tos = (struct.unpack("!I", data[:4])[0] >> 20) & 0xFF if six else data[1]
    return Segment(
        source, target, sport, dport, seq, ack, bits & 0x1FF, window, urgent, body[20:end], body[end:], tos,
        data[7] if six else data[8],
    )  # fmt: skip


def _sack(values: list[str]) -> bytes:
    edges = [int(edge) % 2**32 for value in values for edge in value.split(":")]
    return struct.pack(f"!BB{len(edges)}I", 5, 2 + 4 * len(edges), *edges)


FOEXP = 0xF989  # Fast Open's experiment (RFC 7413 10)

_ENCODERS: dict[str, Callable[[list[str]], bytes]] = {
    "nop": lambda _: b"\1",
    "eol": lambda _: b"\0",
    "hex": lambda values: bytes.fromhex("".join(values)),
    "mss": lambda values: struct.pack("!BBH", 2, 4, int(values[0])),
    "wscale": lambda values: struct.pack("!BBB", 3, 3, int(values[0])),
    "sackok": lambda _: b"\4\2",
    "sack": _sack,
    "fo": lambda values: (
        struct.pack("!BB", 34, 2 + len(values[0]) // 2 if values else 2) + bytes.fromhex("".join(values))
    ),
    "foexp": lambda values: (
        struct.pack("!BBH", 254, 4 + len(values[0]) // 2 if values else 4, FOEXP) + bytes.fromhex("".join(values))
    ),
    "ts": lambda values: struct.pack("!BBII", 8, 10, int(values[1]) % 2**32, int(values[3]) % 2**32),
}


def encode_option(word: str) -> bytes:
    """An option as a script names it."""
    name, *values = word.split()
    try:
        return _ENCODERS[name.lower()](values)
    except (KeyError, IndexError) as error:
        raise ValueError(f"unknown option: {word}") from error


def decode_options(data: bytes) -> list[str]:
    """The options as a script names them, with the sequence numbers and timestamps of the wire."""
    words = []
    while data:
        kind = data[0]
        if kind <= 1:
            words.append("nop" if kind else "eol")
            data = data[1:]
            continue
        value, data = data[2 : data[1]], data[data[1] :]
        match kind:
            case 2:
                words.append(f"mss {int.from_bytes(value)}")
            case 3:
                words.append(f"wscale {value[0]}")
            case 4:
                words.append("sackOK")
            case 5:
                edges = struct.unpack(f"!{len(value) // 4}I", value)
                pairs = zip(edges[::2], edges[1::2], strict=True)
                words.append("sack " + " ".join(f"{a}:{b}" for a, b in pairs))
            case 34:
                words.append(f"FO {value.hex()}".rstrip())
            case 254 if int.from_bytes(value[:2]) == FOEXP:
                words.append(f"FOEXP {value[2:].hex()}".rstrip())
            case 8:
                words.append("TS val {} ecr {}".format(*struct.unpack("!II", value)))
            case _:
                words.append(f"hex {bytes((kind, len(value) + 2)).hex()}{value.hex()}")
    return words
