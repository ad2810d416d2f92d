# SPDX-License-Identifier: BSD-2-Clause
"""Every strategy of dispatch and locking, the workloads in memory that show it, and published results about them.

The values come from the stack, which reports the choices of a knob; cells that cannot differ are not listed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.stack.measures import Row, datagrams, from_source, in_memory
from tests.stack.rows import CHECKSUMS, FORWARD_MEMORY, GBIT, ROWS
from tests.stack.topology import Topology


@dataclass(frozen=True)
class Workload:
    """A row of the bench, and the interfaces to which its interface tunables apply."""

    row: Row
    interfaces: tuple[str, ...] = ()


def _memory(load: Sequence[str], like: str) -> Workload:
    return Workload(replace(ROWS[like], load=tuple(load)), ("mem0",))


def _chargen(streams: str) -> Workload:
    return Workload(Row(in_memory, "Gbit/s", ("out", "-n", streams), CHARGEN, scale=GBIT), ("mem0",))


def _unix(*load: str) -> Workload:
    return Workload(replace(ROWS["memory: UNIX like MySQL, single"], load=load, tunables={}))


BULK, ROUND_TRIPS = "memory: bulk, MTU 1500", "memory: request/response, 1"
UDP_SOURCE = "from=10.97.0.2 to=10.97.0.1 flows=64"
# Without it a CPU would measure drops; a thread without work sleeps.
RATE = "from=10.97.0.2 to=10.97.1.2 flows=64 rate=1000000"
PACED = {"if.mem0.source": RATE, "machine.spin_us": "0"}
CHARGEN = {**CHECKSUMS, "if.mem0.wire": "chargen", "if.mem0.lro": "0"}
WORKLOADS = {
    "TCP 1": _memory(("self", "in"), BULK),
    "TCP 4": _memory(("self", "in", "-n", "4"), BULK),
    "RR 1": _memory(("self", "rr"), ROUND_TRIPS),
    "RR 16": _memory(("self", "rr", "-n", "16"), ROUND_TRIPS),
    "CRR 4": _memory(("self", "crr", "-n", "4"), ROUND_TRIPS),
    "UDP in": Workload(
        Row(datagrams, "1000/s", ("netreceive", "9"), {"if.mem0.source": UDP_SOURCE}, scale=1e-3), ("mem0",)
    ),
    "UDP out": Workload(Row(datagrams, "1000/s", ("netblast", "10.97.0.7", "9"), scale=1e-3), ("mem0",)),
    "forward": Workload(replace(FORWARD_MEMORY, tunables=PACED), ("mem0", "mem1")),
    "received": Workload(
        Row(from_source, "Mpps/core", ("if.mem0.stats.ipackets",), {"if.mem0.source": UDP_SOURCE}, scale=1e-6),
        ("mem0",),
    ),
    "chargen 1": _chargen("1"),
    "chargen 10": _chargen("10"),
    "UNIX": _unix(),
    "UNIX 1:1": _unix("-w", "simple"),
}
TCP = ("TCP 1", "TCP 4", "RR 1", "RR 16", "CRR 4")
CHARGENS = ("chargen 1", "chargen 10")
UDP = ("UDP in", "UDP out")
UNIX = ("UNIX", "UNIX 1:1")
IN_TURN = ("TCP 1", "RR 1", "UDP in", "forward")  # one packet after the other: the cost of a packet
AT_ONCE = ("TCP 4", "RR 16", "UDP in")  # several threads and flows: contention
ALL = (*TCP, *UDP, "forward", *UNIX)

DEFERRED = {"net.isr.dispatch": "deferred"}
TWO_WORKERS = {**DEFERRED, "net.isr.maxthreads": "2"}
COLD = {"if.mem0.source": f"{RATE} cold=1"}


@dataclass(frozen=True)
class Strategy:
    """A knob, and the workloads that it can affect.

    `values` are those of a knob that is a number; the stack reports those of a choice. `base` is set on both sides, for
    a knob that has no effect without it.
    """

    knob: str
    workloads: tuple[str, ...]
    values: tuple[str, ...] = ()
    base: Mapping[str, str] = field(default_factory=dict)


STRATEGIES = (
    Strategy("debug.mpsafenet", ALL, ("0",)),
    Strategy("lock.giant_adaptive", ("TCP 4", "CRR 4", "UNIX"), ("0",), {"debug.mpsafenet": "0"}),
    Strategy("lock.mutex", ("TCP 1", *AT_ONCE, "CRR 4", *CHARGENS, *UNIX)),
    Strategy("lock.spin_limit", ("TCP 4", "CRR 4", *UNIX), ("1000",)),
    Strategy("kern.smp.disabled", ("TCP 1", "RR 1", "RR 16", "UNIX"), ("1",)),
    Strategy("machine.placement", ("TCP 1", "TCP 4", "RR 1", "RR 16")),
    Strategy("machine.sched", ("TCP 4", "RR 16", "CRR 4")),
    Strategy("machine.spin_us", ("TCP 1", "RR 1", "RR 16", "CRR 4", "UNIX"), ("0",)),
    Strategy("net.isr.dispatch", (*TCP, "UDP in", "forward")),
    Strategy("net.isr.generation", IN_TURN),
    Strategy("net.isr.generation", IN_TURN, base=DEFERRED),
    Strategy("net.isr.maxthreads", AT_ONCE, ("2",), DEFERRED),
    Strategy("net.isr.bindthreads", AT_ONCE, ("1",), TWO_WORKERS),
    Strategy("net.isr.feedback", ("UDP in", "forward"), ("0",), DEFERRED),
    Strategy("net.isr.proto.ip.policy", AT_ONCE, base=TWO_WORKERS),
    Strategy("net.isr.proto.ip.mpsafe", IN_TURN, ("0",)),
    Strategy("net.inet.tcp.input", (*TCP, *CHARGENS)),
    Strategy("net.inet.ip.alone", ("TCP 1", "TCP 4"), ("tcp",), {"net.inet.tcp.input": "shared-socket"}),
    Strategy("net.lock.readers", ("TCP 1", "TCP 4", "RR 16"), base={"net.inet.tcp.input": "shared-socket"}),
    Strategy("net.inet.tcp.pcbtable", ("TCP 4", "RR 16", "CRR 4"), base=TWO_WORKERS),
    Strategy("net.inet.udp.pcbtable", UDP),
    Strategy("net.inet.tcp.listeners", ("CRR 4",)),
    Strategy("kern.ipc.listeners", ("CRR 4",)),
    Strategy("kern.callout.wheels", ("RR 16", "CRR 4")),
    Strategy("net.inet.ip.fastforwarding", ("forward",), ("1",)),
    Strategy("net.prefetch", ("forward",), ("1",), COLD),
    Strategy("kern.mbuf.depots", ("TCP 1", "TCP 4", "forward"), ("1",)),
    Strategy("kern.mbuf.recycle", ("TCP 1", "UDP in", "forward")),
    Strategy("if.<name>.lro", ("TCP 1", "TCP 4"), ("0",)),
    Strategy("if.<name>.monitor", ("received",)),
    Strategy("if.<name>.needsgiant", ("TCP 1", "RR 1", "UDP out", "forward"), ("1",)),
    Strategy("if.<name>.transmit", ("TCP 1", "RR 1", "UDP out", "forward")),
    Strategy("unix.locking", UNIX),
    Strategy("fd.lock", ("RR 16", *UNIX)),
)
# Choices that are no strategy of dispatch or locking, or cannot differ here.
NO_STRATEGY = {
    "debug.witness.mode": "what a build that is checked does with what it finds",
    "net.inet.tcp.cc.algorithm": "nothing is lost in memory",
    "net.inet.tcp.personality": "a preset of other tunables",
    "net.isr.proto.arp.dispatch": "net.isr.dispatch for one protocol",
    "net.isr.proto.ether.dispatch": "net.isr.dispatch for one protocol",
    "net.isr.proto.ip.dispatch": "net.isr.dispatch for one protocol",
    "net.isr.proto.ip6.dispatch": "net.isr.dispatch for one protocol",
    "net.isr.proto.arp.policy": "a packet in a thousand",
    "net.isr.proto.ether.policy": "nothing of it is queued",
    "net.isr.proto.ip6.policy": "as that of IPv4",
    "unix.sockets": "whose sockets they are",
}
# Real-time threads that yield for work would keep the load off two CPUs.
NO_VALUE = {"machine.sched": ("fifo", "rr")}


@dataclass(frozen=True)
class Known:
    """The tunables of a booted stack: their choices, if any, and their values."""

    choices: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, str]

    def values(self, strategy: Strategy) -> tuple[str, ...]:
        """All values of a knob, without its default and those that must not be tried."""
        knob = strategy.knob
        if knob not in self.defaults:
            raise KeyError(f"the stack has no tunable {knob}: repair STRATEGIES of tests/stack/strategies.py")
        left_out = (self.defaults[knob], *NO_VALUE.get(knob, ()))
        return tuple(value for value in strategy.values or self.choices[knob] if value not in left_out)


def known(topology: Topology) -> Known:
    """Query a booted stack for it, under a program, because the tunables of descriptors are there, too."""
    child = topology.boot({}, [f"{topology.installed.prefix}/bin/netreceive", "9"])
    try:
        types, values = (
            dict(line.split(":", 1) for line in topology.ask("sysctl", option).splitlines()) for option in ("-t", "-a")
        )
    finally:
        topology.stop(child)
    return parse_known(types, values)


def parse_known(types: Mapping[str, str], values: Mapping[str, str]) -> Known:
    """Read lines of `sysctl -t` and `-a`, split at the colon; an interface's tunables are those of all."""

    def general(name: str) -> str:
        return name.replace("if.tap0.", "if.<name>.")

    words = {general(name): tuple(text.split()) for name, text in types.items()}
    choices = {name: several for name, several in words.items() if len(several) > 1}
    return Known(choices, {general(name): text.strip() for name, text in values.items() if name in types})


@dataclass(frozen=True)
class Arm:
    """The boot settings of an arm under a workload; `label` is None for the one to which the others are compared."""

    workload: str
    base: tuple[tuple[str, str], ...]
    label: str | None
    setting: tuple[tuple[str, str], ...] = ()

    def row(self) -> Row:
        """The row that measures it."""
        row = WORKLOADS[self.workload].row
        return replace(row, tunables={**row.tunables, **dict(self.base), **dict(self.setting)})


def groups(known: Known, words: Sequence[str] = ()) -> list[list[Arm]]:
    """The arms that are compared with one another, each group with its default first; of some knobs only if named."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[Arm]] = {}
    for strategy in STRATEGIES:
        if words and not any(word in strategy.knob for word in words):
            continue
        base = tuple(strategy.base.items())
        for value in known.values(strategy):
            for name in strategy.workloads:
                group = found.setdefault((name, base), [Arm(name, base, None)])
                group.append(Arm(name, base, f"{strategy.knob}={value}", tuple(_settings(strategy.knob, value, name))))
    return list(found.values())


def _settings(knob: str, value: str, workload: str) -> Iterable[tuple[str, str]]:
    if "<name>" not in knob:
        return [(knob, value)]
    return [(knob.replace("<name>", name), value) for name in WORKLOADS[workload].interfaces]


@dataclass(frozen=True)
class Published:
    """Two published settings, the slower first, under a workload that shows the difference."""

    title: str
    published: str
    workload: str
    slower: tuple[tuple[str, str], ...]
    faster: tuple[tuple[str, str], ...]

    def arms(self) -> list[Arm]:
        """A group of two, as those of the table."""
        return [Arm(self.workload, (), None, self.slower), Arm(self.workload, (), self.title, self.faster)]


def _direct(title: str, published: str, workload: str) -> Published:
    way = "net.isr.dispatch"
    return Published(f"direct against deferred, {title}", published, workload, ((way, "deferred"),), ((way, "direct"),))


PUBLISHED = (
    Published(
        "shared-socket-batch against shared-socket, one stream",
        "+38 to +100 % (Bluhm 2025)",
        "chargen 1",
        (("net.inet.tcp.input", "shared-socket"),),
        (("net.inet.tcp.input", "shared-socket-batch"),),
    ),
    _direct(
        "packets forwarded in a second of CPU", "a stream through a router: +13.6 %, SMP +15.7 % (2005)", "forward"
    ),
    _direct("round trips", "+0.9 %, SMP +0.7 % (2005)", "RR 1"),
)
