# SPDX-License-Identifier: BSD-2-Clause
"""System calls of a script: constants, values in memory, TCP_INFO."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import select
import socket
import struct
import termios

_MODULES = (socket, fcntl, os, select, termios, errno)
_MORE = {
    "SIOCINQ": termios.FIONREAD, "SIOCOUTQ": termios.TIOCOUTQ, "TCP_TIMESTAMP": 24, "TCP_INQ": 36, "TCP_MAXSEG": 2,
    "MSG_ZEROCOPY": 0x4000000, "SO_ZEROCOPY": 60, "IPV6_TCLASS": 67, "TCP_USER_TIMEOUT": 18, "IP_TTL": 2,
    "SOL_TCP": 6, "TCP_SAVED_SYN": 28, "TCP_SAVE_SYN": 27, "TCP_NOTSENT_LOWAT": 25, "SO_RCVLOWAT": 18,
    "TCP_CA_Open": 0, "TCP_CA_Disorder": 1, "TCP_CA_CWR": 2, "TCP_CA_Recovery": 3, "TCP_CA_Loss": 4,
    "TCP_RTO_MAX_MS": 44, "TCP_FASTOPEN_CONNECT": 30, "TCP_FASTOPEN_KEY": 33,
    "TCP_FASTOPEN_NO_COOKIE": 34, "TCPI_OPT_SYN_DATA": 32,
}  # fmt: skip
_BYTES = ("state", "ca_state", "retransmits", "probes", "backoff", "options", "wscales", "flags")
_WORDS = (
    "rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans", "fackets", "last_data_sent",
    "last_ack_sent", "last_data_recv", "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh",
    "snd_cwnd", "advmss", "reordering", "rcv_rtt", "rcv_space", "total_retrans",
)  # fmt: skip
INFO_SIZE = len(_BYTES) + 4 * len(_WORDS)


def constant(word: str) -> int:
    """The value of `A|B`, of a name of the system's headers or of a number; ValueError for another word."""
    total = 0
    for part in word.split("|"):
        name = part.strip()
        value = _MORE.get(name)
        for module in _MODULES:
            value = getattr(module, name, None) if value is None else value
        total |= int(name, 0) if value is None else int(value)
    return total


def info(data: bytes) -> dict[str, int]:
    """The members of Linux's struct tcp_info, with its prefix, and its constants."""
    values = struct.unpack(f"={len(_BYTES)}B{len(_WORDS)}I", data[:INFO_SIZE])
    members = {f"tcpi_{name}": value for name, value in zip(_BYTES + _WORDS, values, strict=True)}
    return {**members, **{name: value for name, value in _MORE.items() if name.startswith(("TCP_CA_", "TCPI_"))}}


def memory(word: str) -> ctypes.Array[ctypes.c_char]:
    """What `[1, 2]`, `{l_onoff=1, l_linger=5}` or `"text"` is in memory: 32 bits for each number."""
    if word.startswith('"'):
        return ctypes.create_string_buffer(word.strip('"').encode())
    numbers = [part.rpartition("=")[2] for part in re.split(r"[\[\]{},\s]+", word) if part]
    data = struct.pack(f"={len(numbers)}i", *map(constant, numbers))
    return ctypes.create_string_buffer(data, len(data))


def address(host: str, port: int, family: int) -> ctypes.Array[ctypes.c_char]:
    """struct sockaddr_in or sockaddr_in6; an IPv4 address in the latter is mapped."""
    if family == socket.AF_INET:
        data = struct.pack("=H", family) + struct.pack("!H4s8x", port, socket.inet_aton(host))
    else:
        host = host if ":" in host else f"::ffff:{host}"
        data = struct.pack("=H", family) + struct.pack("!HI16sI", port, 0, socket.inet_pton(family, host), 0)
    return ctypes.create_string_buffer(data, len(data))


def any_address(family: int) -> str:
    """The wildcard."""
    return "0.0.0.0" if family == socket.AF_INET else "::"  # noqa: S104 - in the stack, not on this machine
