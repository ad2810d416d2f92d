# SPDX-License-Identifier: BSD-2-Clause
"""The rows of `./dev bench stack`: the measurements of the stack, by name."""

from __future__ import annotations

import os
from dataclasses import replace

from tests.stack.measures import Row, between_hosts, by_path, by_unixbench, from_source, in_memory, over_veth
from tests.stack.topology import DRIVERS

GBIT = 8e-9
LO_1500 = ("ip link set lo mtu 1500", "ethtool -K lo tso off gso off gro off")
LO_64K = ("ip link set lo mtu 65536", "ethtool -K lo tso on gso on gro on")
CHECKSUMS, SEGMENTS = {"if.mem0.offload": "1"}, {"if.mem0.offload": "2"}
DCTCP = {**CHECKSUMS, "net.inet.tcp.cc.algorithm": "dctcp"}
CPUS = str(os.cpu_count() or 1)
ON_EACH = {**SEGMENTS, "if.mem0.queues": CPUS}


def _bulk(family: int, *load: str) -> Row:
    return Row(over_veth, "Gbit/s", load, scale=GBIT, cpu_unit="s/GB", cpu_scale=1e9, family=family)


def _transactions(family: int, *load: str) -> Row:
    return Row(over_veth, "1000/s", load, scale=1e-3, cpu_unit="us", cpu_scale=1e6, family=family)


def _by_events(row: Row) -> Row:
    """Each end has all its connections in one thread, so that no threads of its own compete in the measurement."""
    return replace(row, server=("-e",))


def _over_veth(family: int) -> dict[str, Row]:
    return {
        "bulk in, 1 stream": _bulk(family, "in"),
        "bulk in, 4 streams": _bulk(family, "in", "-n", "4"),
        "bulk out, 1 stream": _bulk(family, "out"),
        "bulk out, 4 streams": _bulk(family, "out", "-n", "4"),
        "request/response, 1": _transactions(family, "rr"),
        "request/response, 16": _transactions(family, "rr", "-n", "16"),
        "request/response, 16, event loop": _by_events(_transactions(family, "rr", "-e", "-n", "16")),
        "connect+request+close, 1": _transactions(family, "crr"),
        "connect+request+close, 8": _transactions(family, "crr", "-n", "8"),
        "connect+request+close, 8, event loop": _by_events(_transactions(family, "crr", "-e", "-n", "8")),
    }


def _unixbench(locking: str) -> Row:
    return Row(by_unixbench, "1000/s", tunables={"unix.locking": locking}, scale=1e-3, cpu_unit="us", cpu_scale=1e6,
               sides=("stack", "linux") if locking == "single" else ("stack",))  # fmt: skip


UNIX_LOCKING = ("giant", "single", "global", "rwlock", "pair", "socket")
FORWARDED = ("if.mem1.stats.opackets",)
FORWARD_MEMORY = Row(from_source, "Mpps/core", FORWARDED, scale=1e-6, sides=("stack",))
FORWARD_FAST = replace(FORWARD_MEMORY, tunables={"net.inet.ip.fastforwarding": "1"})
ROWS = {
    **_over_veth(4),
    **{f"{name}, IPv6": row for name, row in _over_veth(6).items()},
    **{
        f"forward, {driver.name}": Row(
            between_hosts, "Mpps/core", ("-n", "64"), scale=1e-6, cpu_unit="us", cpu_scale=1e6, driver=driver
        )
        for driver in DRIVERS
    },
    "memory: bulk, MTU 1500": Row(in_memory, "Gbit/s", ("self", "in"), CHECKSUMS, LO_1500, GBIT),
    "memory: bulk, MTU 1500, DCTCP": Row(in_memory, "Gbit/s", ("self", "in"), DCTCP, scale=GBIT, sides=("stack",)),
    "memory: bulk, 64 K": Row(in_memory, "Gbit/s", ("self", "in"), SEGMENTS, LO_64K, GBIT),
    "memory: request/response, 1": Row(in_memory, "1000/s", ("self", "rr"), SEGMENTS, LO_64K, 1e-3),
    "memory: request/response, 64": Row(in_memory, "1000/s", ("self", "rr", "-n", "64"), SEGMENTS, LO_64K, 1e-3),
    "memory: round trips, one thread": Row(in_memory, "1000/s", ("alone", "rr"), SEGMENTS, LO_64K, 1e-3),
    "memory: round trips, a thread on each CPU": Row(
        in_memory, "1000/s", ("alone", "rr", "-p", CPUS), ON_EACH, LO_64K, 1e-3
    ),
    "memory: round trips, each CPU, one table lock": Row(
        in_memory, "1000/s", ("alone", "rr", "-p", CPUS), {**ON_EACH, "net.inet.tcp.pcbtable": "global"}, LO_64K, 1e-3
    ),
    "memory: UNIX request/response, 1": Row(by_path, "1000/s", ("self", "rr"), scale=1e-3),
    "memory: UNIX request/response, 64": Row(by_path, "1000/s", ("self", "rr", "-n", "64"), scale=1e-3),
    **{f"memory: UNIX like MySQL, {strategy}": _unixbench(strategy) for strategy in UNIX_LOCKING},
    "memory: forward": FORWARD_MEMORY,
    "memory: forward, fast": FORWARD_FAST,
}
