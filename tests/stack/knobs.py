# SPDX-License-Identifier: BSD-2-Clause
"""What each strategy of dispatch and locking does on this machine, beside the default.

`./dev bench knobs [--quick] [--signs] [--patience 60] [--write] [KNOB ...]` says first how long it will take if the
CPUs are quiet, prints a table of strategies and workloads and what the two published comparisons give here, and keeps
every sample in var/bench/knobs.json; --write makes docs/knobs.md of it.  A cell is one value of one knob under one
workload in memory: in each round, the boots of a workload are in a random order, and the ratio is that to the default's
boot of the same round.  What was measured while the CPUs were not at their best (tests/stack/control.py) is measured
again at once, so that a round stays one, until the patience is over, in minutes from the start.  The values come from
the stack, which says what a knob may be; cells that cannot differ are not measured.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.stack.control import Control, Look
from tests.stack.knobs_page import Cell, Measured, Sign, page, report
from tests.stack.measures import Bench, Row, datagrams, from_source, in_memory
from tests.stack.results import keep
from tests.stack.rows import CHECKSUMS, FORWARD_MEMORY, GBIT, ROWS
from tests.stack.topology import ROOT, Installed, Topology

PAGE = ROOT / "docs" / "knobs.md"
FAILURES = 2  # of an arm, after which it is given up
OVERHEAD = 0.46  # seconds of a sample that nothing is measured in: looks at the CPUs, boot, warm-up, end


@dataclass(frozen=True)
class Workload:
    """A row of the bench, and the interfaces that a tunable of an interface is set for."""

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
# What a CPU forwards whatever the strategy, or drops would be measured; a thread without work sleeps.
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
IN_TURN = ("TCP 1", "RR 1", "UDP in", "forward")  # one packet after the other: what a packet costs
AT_ONCE = ("TCP 4", "RR 16", "UDP in")  # several threads and flows: who keeps out of whose way
ALL = (*TCP, *UDP, "forward", *UNIX)

DEFERRED = {"net.isr.dispatch": "deferred"}
TWO_WORKERS = {**DEFERRED, "net.isr.maxthreads": "2"}
COLD = {"if.mem0.source": f"{RATE} cold=1"}


@dataclass(frozen=True)
class Strategy:
    """A knob, and where it can act.

    `values` are those of a knob that is a number; of one that is a choice, the stack knows them.  `base` holds on both
    sides, where a knob does nothing without it.
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
    Strategy("net.isr.proto.ip.policy", AT_ONCE, base=TWO_WORKERS),
    Strategy("net.isr.proto.ip.mpsafe", IN_TURN, ("0",)),
    Strategy("net.inet.tcp.input", (*TCP, *CHARGENS)),
    Strategy("net.inet.ip.alone", ("TCP 1", "TCP 4"), ("tcp",), {"net.inet.tcp.input": "shared-socket"}),
    Strategy("net.inet.tcp.pcbtable", ("TCP 4", "RR 16", "CRR 4"), base=TWO_WORKERS),
    Strategy("net.inet.ip.fastforwarding", ("forward",), ("1",)),
    Strategy("net.prefetch", ("forward",), ("1",), COLD),
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
    """What a booted stack says of its tunables: the words that each may be, if it is a choice, and what it is."""

    choices: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, str]

    def values(self, strategy: Strategy) -> tuple[str, ...]:
        """All that a knob may be, but for its default and what must not be tried."""
        knob = strategy.knob
        if knob not in self.defaults:
            raise KeyError(f"the stack has no tunable {knob}: repair STRATEGIES of tests/stack/knobs.py")
        left_out = (self.defaults[knob], *NO_VALUE.get(knob, ()))
        return tuple(value for value in strategy.values or self.choices[knob] if value not in left_out)


def known(topology: Topology) -> Known:
    """Asks a stack that is booted for it, under a program: the tunables of descriptors are there, too."""
    child = topology.boot({}, [f"{topology.installed.prefix}/bin/netreceive", "9"])
    try:
        types, values = (
            dict(line.split(":", 1) for line in topology.ask("sysctl", option).splitlines()) for option in ("-t", "-a")
        )
    finally:
        topology.stop(child)
    return parse_known(types, values)


def parse_known(types: Mapping[str, str], values: Mapping[str, str]) -> Known:
    """Reads lines of `sysctl -t` and `-a`, split at the colon; an interface's tunables are those of all."""

    def general(name: str) -> str:
        return name.replace("if.tap0.", "if.<name>.")

    words = {general(name): tuple(text.split()) for name, text in types.items()}
    choices = {name: several for name, several in words.items() if len(several) > 1}
    return Known(choices, {general(name): text.strip() for name, text in values.items() if name in types})


@dataclass(frozen=True)
class Arm:
    """What a stack is booted with under a workload; `label` is None for that to which the others are compared."""

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


@dataclass
class Samples:
    """What a number of rounds gave: the rate of each arm, by round, and what went wrong with it.

    `looks` are those of the control around what counts; `void` is how often a sample was measured again.
    """

    rates: dict[Arm, dict[int, float]] = field(default_factory=dict)
    failures: dict[Arm, list[str]] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    void: int = 0

    def take(self, bench: Bench, control: Control, arm: Arm, turn: int) -> None:
        """Measures it once more, unless it has failed too often."""
        failures = self.failures.setdefault(arm, [])
        if len(failures) == FAILURES:
            return
        try:
            self.rates.setdefault(arm, {})[turn] = self._quiet_rate(bench, control, arm.row())
        except (AssertionError, subprocess.TimeoutExpired) as why:
            failures.append(str(why).strip().splitlines()[-1])
            print(f"{arm.label or 'the default'} under {arm.workload}: {failures[-1]}", file=sys.stderr)

    def _quiet_rate(self, bench: Bench, control: Control, row: Row) -> float:
        while True:
            sample, look = control.around(lambda: row.measure(bench, row, "stack"))
            assert sample.rate > 0, "nothing was moved"
            if control.is_quiet(look) or not control.waits():
                self.looks.append(look)
                return sample.rate * row.scale
            self.void += 1

    def pairs(self, default: Arm, arm: Arm) -> tuple[tuple[float, float], ...]:
        """The rates of two arms in the rounds in which both have one."""
        ours, theirs = self.rates.get(default, {}), self.rates.get(arm, {})
        return tuple((rate, theirs[turn]) for turn, rate in ours.items() if turn in theirs)


def measure_cells(
    bench: Bench, control: Control, found: Sequence[Sequence[Arm]], rounds: int, shuffle: random.Random
) -> Samples:
    """All groups, round by round."""
    samples = Samples()
    for turn in range(rounds if found else 0):
        print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
        for group in found:
            for arm in shuffle.sample(group, len(group)):
                samples.take(bench, control, arm, turn)
    return samples


def cells(found: Sequence[Sequence[Arm]], samples: Samples) -> list[Cell]:
    """What came out, as the page has it."""
    return [
        Cell(str(arm.label), dict(arm.base), arm.workload, samples.pairs(default, arm))
        for default, *others in found
        for arm in others
    ]


@dataclass(frozen=True)
class Published:
    """Two settings that somebody compared, the slower first, under a workload that shows the difference."""

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


def estimate(boots: int, seconds: float) -> str:
    """How long so many boots take, in words."""
    return f"{boots} boots, about {boots * (seconds + OVERHEAD) / 60:.0f} minutes"


def noise(samples: Sequence[Samples], control: Control) -> str:
    """How many samples were measured again, and how many count although the CPUs were busy, in words."""
    void = sum(those.void for those in samples)
    busy = sum(not control.is_quiet(look) for those in samples for look in those.looks)
    return f"{void} samples void, {busy} counted without quiet CPUs"


def document(measured: Measured, found: Mapping[str, Samples]) -> dict[str, object]:
    """Every sample that counts."""
    return {
        "measured": measured.sentence(),
        **{
            name: [
                {
                    "workload": arm.workload,
                    "base": dict(arm.base),
                    "setting": dict(arm.setting),
                    "rates": list(rates.values()),
                }
                for arm, rates in samples.rates.items()
            ]
            for name, samples in found.items()
        },
    }


def options(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./dev bench knobs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds and short samples: a look, no measurement")
    parser.add_argument("--signs", action="store_true", help="the published comparisons alone")
    parser.add_argument("--write", action="store_true", help="make docs/knobs.md of it")
    parser.add_argument("--rounds", type=int, help="of the table (5)")
    parser.add_argument("--pairs", type=int, help="of the published comparisons (30)")
    parser.add_argument("--seconds", type=float, help="of each sample (0.4)")
    parser.add_argument("--patience", type=float, help="minutes, after which busy CPUs will do (60; quick: 0)")
    parser.add_argument("knobs", nargs="*", metavar="KNOB", help="words of the names of knobs; all unless named")
    chosen = parser.parse_args(argv)
    chosen.rounds = chosen.rounds or (3 if chosen.quick else 5)
    chosen.pairs = chosen.pairs or (6 if chosen.quick else 30)
    chosen.seconds = chosen.seconds or (0.05 if chosen.quick else 0.4)
    if chosen.patience is None:
        chosen.patience = 0.0 if chosen.quick else 60.0
    if min(chosen.rounds, chosen.pairs) < 2 or chosen.seconds <= 0:
        parser.error("an interval needs two rounds and two pairs or more, and samples of more than no time")
    if chosen.write and (chosen.signs or chosen.knobs):
        parser.error("--write makes the whole page: leave out --signs and names of knobs")
    if chosen.knobs and not any(word in strategy.knob for word in chosen.knobs for strategy in STRATEGIES):
        parser.error(f"no such knob; there are: {', '.join(dict.fromkeys(s.knob for s in STRATEGIES))}")
    return chosen


def measure(chosen: argparse.Namespace) -> str:
    """Measures what was asked for, and keeps it; the text to print."""
    installed = Installed()
    shuffle = random.Random()
    start = time.monotonic()
    try:
        with Topology(installed) as topology:
            found = [] if chosen.signs else groups(known(topology), chosen.knobs)
            comparisons = () if chosen.knobs else PUBLISHED
            boots = chosen.rounds * sum(map(len, found)) + 2 * chosen.pairs * len(comparisons)
            print(estimate(boots, chosen.seconds), file=sys.stderr, flush=True)
            bench, control = Bench(topology, chosen.seconds), Control.remembering(chosen.patience * 60)
            signs = [comparison.arms() for comparison in comparisons]
            of_signs = measure_cells(bench, control, signs, chosen.pairs, shuffle)
            of_cells = measure_cells(bench, control, found, chosen.rounds, shuffle)
    finally:
        installed.remove()
    minutes = (time.monotonic() - start) / 60
    control.remember()
    said = noise([of_cells, of_signs], control)
    measured = Measured(chosen.rounds, chosen.pairs, chosen.seconds, minutes, said)
    path = keep("knobs", document(measured, {"cells": of_cells, "signs": of_signs}))
    print(f"samples: {path}", file=sys.stderr)
    as_published = [Sign(c.title, c.published, cells([c.arms()], of_signs)[0]) for c in comparisons]
    units = {name: workload.row.unit for name, workload in WORKLOADS.items()}
    if chosen.write:
        PAGE.write_text(page(cells(found, of_cells), as_published, units, measured), encoding="utf-8")
    return f"{report(cells(found, of_cells), as_published, units)}\n\n{said}"


def main(argv: Sequence[str]) -> int:
    """The command line; its exit status."""
    print(measure(options(argv)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
