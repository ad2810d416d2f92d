# SPDX-License-Identifier: BSD-2-Clause
"""libstack_packetdrill.so in this process: the table of stack/api/packetdrill.h through ctypes."""

from __future__ import annotations

import ctypes
from ctypes import c_int, c_long, c_longlong, c_size_t, c_ulong, c_void_p
from pathlib import Path

_LARGEST = 65536 + 64


class TimeVal(ctypes.Structure):
    """struct timeval."""

    _fields_ = (("sec", c_long), ("usec", c_long))


# The members in the order of the header: name, type of the result, types of the arguments after userdata.
_MEMBERS = (
    ("free", None, ()),
    ("socket", c_int, (c_int, c_int, c_int)),
    ("bind", c_int, (c_int, c_void_p, c_int)),
    ("listen", c_int, (c_int, c_int)),
    ("accept", c_int, (c_int, c_void_p, c_void_p)),
    ("connect", c_int, (c_int, c_void_p, c_int)),
    ("read", c_long, (c_int, c_void_p, c_size_t)),
    ("readv", c_long, (c_int, c_void_p, c_int)),
    ("recv", c_long, (c_int, c_void_p, c_size_t, c_int)),
    ("recvfrom", c_long, (c_int, c_void_p, c_size_t, c_int, c_void_p, c_void_p)),
    ("recvmsg", c_long, (c_int, c_void_p, c_int)),
    ("write", c_long, (c_int, c_void_p, c_size_t)),
    ("writev", c_long, (c_int, c_void_p, c_int)),
    ("send", c_long, (c_int, c_void_p, c_size_t, c_int)),
    ("sendto", c_long, (c_int, c_void_p, c_size_t, c_int, c_void_p, c_int)),
    ("sendmsg", c_long, (c_int, c_void_p, c_int)),
    ("fcntl", c_int, (c_int, c_int, c_long)),
    ("ioctl", c_int, (c_int, c_ulong, c_void_p)),
    ("close", c_int, (c_int,)),
    ("shutdown", c_int, (c_int, c_int)),
    ("getsockopt", c_int, (c_int, c_int, c_int, c_void_p, c_void_p)),
    ("setsockopt", c_int, (c_int, c_int, c_int, c_void_p, c_int)),
    ("poll", c_int, (c_void_p, c_ulong, c_int)),
    ("netdev_send", c_int, (c_void_p, c_size_t)),
    ("netdev_receive", c_int, (c_void_p, c_void_p, c_void_p)),
    ("usleep", c_int, (ctypes.c_uint,)),
    ("gettimeofday", c_int, (c_void_p, c_void_p)),
    ("epoll_create", c_int, (c_int,)),
    ("epoll_ctl", c_int, (c_int, c_int, c_int, c_void_p)),
    ("epoll_wait", c_int, (c_int, c_void_p, c_int, c_int)),
    ("pipe", c_int, (c_void_p,)),
    ("splice", c_int, (c_int, c_void_p, c_int, c_void_p, c_size_t, ctypes.c_uint)),
)
_TYPES = {name: ctypes.CFUNCTYPE(result, c_void_p, *args, use_errno=True) for name, result, args in _MEMBERS}


class _Table(ctypes.Structure):
    _fields_ = (("userdata", c_void_p), *_TYPES.items())


class Machine:
    """A stack in virtual time, with one interface. A process can have one only."""

    def __init__(self, library: Path, flags: str) -> None:
        self._library = ctypes.CDLL(str(library))
        self._table = _Table()
        self._library.packetdrill_interface_init(flags.encode(), ctypes.byref(self._table))

    def call(self, name: str, *args: object) -> tuple[int, int]:
        """Call a member; return its result and errno."""
        ctypes.set_errno(0)
        result: int = getattr(self._table, name)(None, *args)
        return result, ctypes.get_errno()

    def now(self) -> float:
        """Virtual seconds."""
        value = TimeVal()
        self.call("gettimeofday", ctypes.addressof(value), None)
        return float(value.sec + value.usec / 1e6)

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        while seconds > 0:
            step = min(seconds, 1000.0)
            self.call("usleep", round(step * 1e6))
            seconds -= step

    def inject(self, packet: bytes) -> None:
        """Let the stack receive a datagram."""
        self.call("netdev_send", ctypes.create_string_buffer(packet, len(packet)), len(packet))

    def receive(self, wait: float) -> tuple[bytes, float] | None:
        """The next datagram that the stack sent, and when; None if there is none for `wait` virtual seconds."""
        buffer = ctypes.create_string_buffer(_LARGEST)
        length, usecs = c_size_t(_LARGEST), c_longlong()
        self._library.packetdrill_interface_patience(c_longlong(round(wait * 1e6)))
        self.call("netdev_receive", ctypes.addressof(buffer), ctypes.addressof(length), ctypes.addressof(usecs))
        return (buffer.raw[: length.value], usecs.value / 1e6) if length.value else None
