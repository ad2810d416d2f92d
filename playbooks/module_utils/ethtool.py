# SPDX-License-Identifier: BSD-2-Clause
"""Reads the counters of a network driver, as `ethtool -S` shows them, without starting that program.

They come from ioctl(2) SIOCETHTOOL; numbers and layouts are those of Linux's include/uapi/linux/ethtool.h.
"""

from __future__ import annotations

import ctypes
import fcntl
import re
import socket
import struct

_SIOCETHTOOL = 0x8946
_GSSET_INFO, _GSTRINGS, _GSTATS = 0x37, 0x1B, 0x1D
_ETH_SS_STATS = 1
_NAME_BYTES, _NUMBER_BYTES = 32, 8
_SPARE = 64
"""Room for counters beyond the reported number, in case the driver gets more in between."""

_PAUSE = re.compile(r"pause|x(on|off)(_|$)", re.IGNORECASE)


def driver_counters(interface: str) -> dict[str, int]:
    """Returns the counters by the driver's names; empty for a driver without counters or a missing interface."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            known = _query(control, interface, struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _ETH_SS_STATS, 0), 0)
            _, _, found, count = struct.unpack_from("=IIQI", known)
            if not found:
                return {}
            room = count + _SPARE
            names = _query(control, interface, struct.pack("=III", _GSTRINGS, _ETH_SS_STATS, count), room * _NAME_BYTES)
            numbers = _query(control, interface, struct.pack("=II", _GSTATS, count), room * _NUMBER_BYTES)
    except OSError:
        return {}
    return {
        _name(names[12 + place * _NAME_BYTES :]): struct.unpack_from("=Q", numbers, 8 + place * _NUMBER_BYTES)[0]
        for place in range(count)
    }


def pause_frames(interface: str) -> int | None:
    """Returns the number of received pause frames (IEEE 802.3x), None if the driver does not count them.

    Drivers name these counters differently: rx_pause, tx_flow_control_xoff, and so on.
    """
    found = [count for name, count in driver_counters(interface).items() if _PAUSE.search(name)]
    return sum(found) if found else None


def _query(control: socket.socket, interface: str, request: bytes, room: int) -> bytes:
    """Returns the kernel's response to a request, which replaces and extends the request's buffer."""
    buffer = ctypes.create_string_buffer(request, len(request) + room)
    fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), ctypes.addressof(buffer)))
    return buffer.raw


def _name(content: bytes) -> str:
    return content[:_NAME_BYTES].partition(b"\0")[0].decode("utf-8", "replace")
