# SPDX-License-Identifier: BSD-2-Clause
"""The samples of `./dev bench stack`, the selection of those that count, and the table and the page made from them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from perfweb.stats.twosample import mann_whitney
from tests.stack.control import LIMITS, Control, Look
from tests.stack.machine import here_and_now
from tests.stack.rows import ROWS

SIDES = ("stack", "linux")
NEAR = 0.1  # target of the ratio of IPv6 to IPv4
CONFIDENCE = 95  # percent, of the interval of that ratio
WIDTH = max(map(len, ROWS))


def _cell(samples: Sequence[float]) -> str:
    """The median, and the median distance from it."""
    if not samples:
        return f"{'':>9} {'':>7}"
    median = statistics.median(samples)
    spread = statistics.median(abs(sample - median) for sample in samples)
    return f"{median:>9.3f} {'±' + format(spread, '.3f'):>7}"


class Taken(NamedTuple):
    """A rate, seconds of CPU for each unit if the row has them, and the control around them."""

    rate: float
    cpu: float | None
    control: Look


@dataclass
class Result:
    """All samples of a row, by side; the `rounds` with the best control count."""

    unit: str
    cpu_unit: str
    rounds: int
    control: Control
    taken: dict[str, list[Taken]] = field(default_factory=dict)

    def counted(self, side: str) -> list[Taken]:
        """Return the samples that enter the statistics: quiet ones before others, and faster ones first."""

        def rank(taken: Taken) -> tuple[bool, float]:
            return not self.control.is_quiet(taken.control), -taken.control.speed

        return sorted(self.taken.get(side, []), key=rank)[: self.rounds]

    def noisy(self) -> int:
        """Return how many of those were not quiet."""
        return sum(not self.control.is_quiet(taken.control) for side in SIDES for taken in self.counted(side))

    def document(self) -> dict[str, object]:
        """Every sample; the control is that of all rows."""
        taken = {side: [sample._asdict() for sample in samples] for side, samples in self.taken.items()}
        return {"unit": self.unit, "cpu_unit": self.cpu_unit, "rounds": self.rounds, "taken": taken}

    def rates(self, side: str) -> list[float]:
        """The rates that count."""
        return [taken.rate for taken in self.counted(side)]

    def cpus(self, side: str) -> list[float]:
        """The seconds of CPU that count."""
        return [taken.cpu for taken in self.counted(side) if taken.cpu is not None]

    def ratio(self) -> str:
        """The ratio of the stack's median to Linux's."""
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
    """The description of a run: its rows, how quiet it was, and the settings of the Linux ends."""

    results: dict[str, Result]
    control: Control
    settings: dict[str, dict[str, str]] = field(default_factory=dict)

    def noise(self) -> str:
        """The number of void samples, and whether any of those had to count."""
        taken = [sample for result in self.results.values() for side in SIDES for sample in result.taken.get(side, [])]
        noisy = {name: result.noisy() for name, result in self.results.items()}
        void = sum(not self.control.is_quiet(sample.control) for sample in taken) - sum(noisy.values())
        summary = f"{len(taken)} samples; {void} void, with CPUs {LIMITS} before or after than at their best"
        rows = ", ".join(f"{name} ({count})" for name, count in noisy.items() if count)
        return summary + (f"\nno quiet time for these, which count: {rows}" if rows else "")


def report(measured: Measured) -> str:
    """The table, how near IPv6 is to IPv4, and how quiet it was."""
    results = measured.results
    sides = f"{'stack':>9} {'':>7} {'Linux':>9} {'':>7}"
    lines = [f"{'':<{WIDTH}} {'unit':<10} {sides} {'ratio':>6} {'CPU':>5} {sides}".rstrip()]
    lines += [result.line(name) for name, result in results.items()]
    for name, result in results.items():
        other = results.get(name.removesuffix(", IPv6"))
        if other is not None and other is not result:
            lines.append(f"{name}: {_nearness(other.rates('stack'), result.rates('stack'))}")
    return "\n".join([*lines, measured.noise()])


def _nearness(ipv4: Sequence[float], ipv6: Sequence[float]) -> str:
    """Return the ratio of the medians in words; with two samples of each or more with its interval, by ranks."""
    ratio = statistics.median(ipv6) / statistics.median(ipv4)
    interval = ""
    if min(len(ipv4), len(ipv6)) > 1:
        shift = mann_whitney([math.log(rate) for rate in ipv4], [math.log(rate) for rate in ipv6], CONFIDENCE)
        interval = f" ({math.exp(shift.low):.2f} to {math.exp(shift.high):.2f})"
    return f"{ratio:.2f} of IPv4{interval}, {'within' if ratio >= 1 - NEAR else 'not within'} {NEAR:.0%}"


SPEED = """# Throughput and cost of the stack

How fast is the stack on this machine, beside Linux?

`./dev bench stack --write` makes this page. Measured {here_and_now}: {rounds} rounds of all rows, both sides of a
row in turn, samples of {seconds:g} s.

A sample is void, and taken again in a later round, if the CPUs just before or after it were not at their best since
boot:

- A fixed computation on all of them at once was slower by more than a tenth, because another guest of the host used
  them.
- A byte and its answer between two processes on the first and the last CPU took more than two fifths longer. (A
  host can move the CPUs of its virtual machines apart.)

Rates and CPU times are medians, each with the median distance from it.

- *Linux*: the same load with Linux's own sockets, UNIX sockets or forwarding, over a veth pair or loopback. Rates
  depend on the machine; compare the *ratio*
- first twenty rows: the client is Linux, on another CPU; both ends use CUBIC, and a thread for each connection or
  an *event loop*
- *CPU*: CPU time of the server or the router for a GB, a transaction or a packet, including the host's share
- *memory*: one process has both ends of each connection
- *one table lock*: `net.inet.tcp.pcbtable=global`; the default has groups with a lock each
  ([locks](../explanation/tcp-locking.md))

Below the table are the ratios of IPv6 to IPv4: the ratio of the medians, and in brackets the {confidence} %
interval of a common factor between all samples of both, by ranks (Mann and Whitney).

```
{table}
```
"""


def page(measured: Measured, rounds: int, seconds: float) -> str:
    """docs/measured/speed.md."""
    return SPEED.format(
        here_and_now=here_and_now(), rounds=rounds, seconds=seconds, confidence=CONFIDENCE, table=report(measured)
    )
