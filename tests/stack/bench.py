# SPDX-License-Identifier: BSD-2-Clause
"""What the stack does in a second, with Linux's own sockets beside it.

`./dev bench stack [--quick] [--rounds 5] [--seconds 2] [--patience 30] [--write] [ROW ...]` prints a table and writes
var/bench/stack.json with every sample; --write makes docs/speed.md of the table.  Rounds are interleaved: each measures
every row on both sides once, so that what changes on the machine meanwhile changes both.  What was measured while
others had a part of the CPUs (tests/stack/control.py) is measured again, until the patience is over, in minutes from
the start.  tests/stack/measures.py says what runs where.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from tests.stack.control import LIMIT, Control
from tests.stack.machine import here_and_now
from tests.stack.measures import CLIENT_CPU, SERVER_CPU, Bench, Row
from tests.stack.results import keep
from tests.stack.rows import ROWS
from tests.stack.topology import ROOT, Installed, Topology

PAGE = ROOT / "docs" / "speed.md"
NEAR = 0.1  # IPv6 is meant to be this near to IPv4

SIDES = ("stack", "linux")
WIDTH = max(map(len, ROWS))


def _cell(samples: Sequence[float]) -> str:
    """The median, and the median distance from it."""
    if not samples:
        return f"{'':>9} {'':>7}"
    median = statistics.median(samples)
    spread = statistics.median(abs(sample - median) for sample in samples)
    return f"{median:>9.3f} {'±' + format(spread, '.3f'):>7}"


@dataclass(frozen=True)
class Taken:
    """A rate, seconds of CPU for each if the row has them, and how fast the control was around them."""

    rate: float
    cpu: float | None
    control: float


@dataclass
class Result:
    """All that was taken of a row, by side, of which the `rounds` with the fastest control count."""

    unit: str
    cpu_unit: str
    rounds: int
    taken: dict[str, list[Taken]] = field(default_factory=dict)

    def counted(self, side: str) -> list[Taken]:
        """What enters the statistics."""
        return sorted(self.taken.get(side, []), key=lambda taken: -taken.control)[: self.rounds]

    def rates(self, side: str) -> list[float]:
        """The rates that count."""
        return [taken.rate for taken in self.counted(side)]

    def cpus(self, side: str) -> list[float]:
        """The seconds of CPU that count."""
        return [taken.cpu for taken in self.counted(side) if taken.cpu is not None]

    def ratio(self) -> str:
        """The stack's median in Linux's."""
        if not all(map(self.taken.get, SIDES)):
            return ""
        ours, theirs = (statistics.median(self.rates(side)) for side in SIDES)
        return f"{ours / theirs:.2f}"

    def line(self, name: str) -> str:
        """A line of the table."""
        rates = " ".join(_cell(self.rates(side)) for side in SIDES)
        cpu = " ".join(_cell(self.cpus(side)) for side in SIDES) if self.cpu_unit else ""
        return f"{name:<{WIDTH}} {self.unit:<10} {rates} {self.ratio():>6} {self.cpu_unit:>5} {cpu}".rstrip()


@dataclass
class Measured:
    """What there is to say of a run: its rows, what the Linux ends were set to, and how quiet it was."""

    results: dict[str, Result]
    settings: dict[str, dict[str, str]]
    control: Control

    def noise(self) -> str:
        """How many samples were void, and whether any of those had to count."""
        taken = [sample for result in self.results.values() for side in SIDES for sample in result.taken.get(side, [])]
        noisy = {
            name: sum(not self.control.is_quiet(sample.control) for side in SIDES for sample in result.counted(side))
            for name, result in self.results.items()
        }
        void = sum(not self.control.is_quiet(sample.control) for sample in taken) - sum(noisy.values())
        said = f"{len(taken)} samples; {void} void, with CPUs slower by {LIMIT:.0%} before or after than at their best"
        rows = ", ".join(f"{name} ({count})" for name, count in noisy.items() if count)
        return said + (f"\nno quiet time for these, which count: {rows}" if rows else "")


def measure(names: Sequence[str], rounds: int, seconds: float, patience: float) -> Measured:
    """All rows, in rounds, until each has enough samples of quiet CPUs or the patience is over; seconds all."""
    results = {name: Result(ROWS[name].unit, ROWS[name].cpu_unit, rounds) for name in names}
    installed = Installed()
    try:
        with Topology(installed) as topology:
            bench, control = Bench(topology, seconds), Control(patience)
            fill(results, control, lambda name, side: _take(bench, ROWS[name], side, control))
            return Measured(results, bench.settings(), control)
    finally:
        installed.remove()


def fill(results: Mapping[str, Result], control: Control, take: Callable[[str, str], Taken]) -> None:
    """Takes a sample in each round of whatever wants one, until nothing does."""
    for turn in itertools.count(1):
        wanted = _wanted(results, control)
        if not wanted:
            return
        print(f"round {turn}: {len(wanted)} samples", file=sys.stderr, flush=True)
        for name, side in wanted:
            results[name].taken.setdefault(side, []).append(take(name, side))


def _wanted(results: Mapping[str, Result], control: Control) -> list[tuple[str, str]]:
    """The rows and sides that a round is to measure."""
    return [
        (name, side)
        for name, result in results.items()
        for side in ROWS[name].sides
        if len(counted := result.counted(side)) < result.rounds
        or (control.waits() and not all(control.is_quiet(sample.control) for sample in counted))
    ]


def _take(bench: Bench, row: Row, side: str, control: Control) -> Taken:
    sample, speed = control.around(lambda: row.measure(bench, row, side))
    cpu = None if sample.cpu is None else sample.cpu * row.cpu_scale
    return Taken(sample.rate * row.scale, cpu, speed)


def report(measured: Measured) -> str:
    """The table, how near IPv6 is to IPv4, and how quiet it was."""
    results = measured.results
    sides = f"{'stack':>9} {'':>7} {'Linux':>9} {'':>7}"
    lines = [f"{'':<{WIDTH}} {'unit':<10} {sides} {'ratio':>6} {'CPU':>5} {sides}".rstrip()]
    lines += [result.line(name) for name, result in results.items()]
    for name, result in results.items():
        other = results.get(name.removesuffix(", IPv6"))
        if other is not None and other is not result:
            ratio = statistics.median(result.rates("stack")) / statistics.median(other.rates("stack"))
            verdict = "within" if ratio >= 1 - NEAR else "not within"
            lines.append(f"{name}: {ratio:.2f} of IPv4, {verdict} {NEAR:.0%}")
    return "\n".join([*lines, measured.noise()])


SPEED = """# What the stack does in a second on this machine

`./dev bench stack --write` makes this page. Measured {here_and_now}, {rounds} rounds of all
rows, both sides of a row one after the other, samples of {seconds:g} s. A sample is void, and taken again in a later
round, if something else had a part of the CPUs: if a fixed work on all of them at once, just before or just after it,
was slower by more than a tenth than at its best in this run.

Rates and CPU times are medians, each with the median distance from it. *Linux* is the same with Linux's own sockets,
UNIX sockets or forwarding, over a pair of veth or its loopback; other machines have other rates, the *ratio* says more.
The client of the first twenty rows is Linux, on another CPU; both ends have CUBIC, and a thread for each connection or
an *event loop*. *CPU* is what a GB, a transaction or a packet costs the CPU of the server, or of what forwards, with
the host's share. In *memory* one process has both ends of each connection; by default one lock guards the table of all
of them, and *bucket locks* are `net.inet.tcp.pcbtable=bucket`.

```
{table}
```
"""


def page(measured: Measured, rounds: int, seconds: float) -> str:
    """docs/speed.md."""
    return SPEED.format(here_and_now=here_and_now(), rounds=rounds, seconds=seconds, table=report(measured))


def document(measured: Measured, seconds: float) -> dict[str, object]:
    """Every sample, and what they were measured on."""
    machine = {
        "kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()[0],
        "client_cpu": CLIENT_CPU, "server_cpu": SERVER_CPU, "seconds": seconds,
        "control": measured.control.best, "linux": measured.settings,
    }  # fmt: skip
    return {"machine": machine, "rows": {name: asdict(result) for name, result in measured.results.items()}}


def main(argv: Sequence[str]) -> int:
    """The command line; its exit status."""
    parser = argparse.ArgumentParser(
        prog="./dev bench stack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round of half a second each: a look, no measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each sample")
    parser.add_argument("--patience", type=float, default=30.0, help="minutes, after which busy CPUs will do")
    parser.add_argument("--write", action="store_true", help="make docs/speed.md of it")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="words of the names of rows; all unless named")
    options = parser.parse_args(argv)
    names = [name for name in ROWS if not options.rows or any(word in name for word in options.rows)]
    if not names:
        parser.error(f"no such row; there are: {'; '.join(ROWS)}")
    if options.write and (options.quick or options.rows):
        parser.error("--write makes the whole page: leave out --quick and words of rows")
    if options.quick:
        options.rounds, options.seconds, options.patience = 1, 0.5, 0.0
    measured = measure(names, options.rounds, options.seconds, options.patience * 60)
    print(report(measured))
    if options.write:
        PAGE.write_text(page(measured, options.rounds, options.seconds), encoding="utf-8")
    keep("stack", document(measured, options.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
