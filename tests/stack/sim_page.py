# SPDX-License-Identifier: BSD-2-Clause
"""The tables of `./dev bench sim`: predictions compared with measurements, and with published results."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfweb.stats import usl
from perfweb.stats.paired import paired_change
from tests.stack.knobs_page import COVERAGE
from tests.stack.sim_host import Load, Setting

UNITS = {"forward": "packets/s", "unix": "transactions/s", "tcp": "kilobytes/s"}
INPUT = "net.inet.tcp.input"
LADDER = ("exclusive", "exclusive-socket", "shared-socket", "shared-socket-batch")
LADDER_CPUS = (1, 2, 4, 8, 16, 32, 64)
STREAMS_MAX = 56  # of simstack
TOO_WIDE = 40  # percentage points; a wider interval would include nearly anything
PEAK_MAX = 1000  # CPUs; a later peak counts as none


@dataclass(frozen=True)
class Validated:
    """A strategy under a workload on that many CPUs: the predicted change in percent, and pairs of rates."""

    label: str
    workload: str
    cpus: int
    predicted: float | None
    pairs: tuple[tuple[float, float], ...]
    failed: str

    def verdict(self) -> str:
        """Whether the prediction is in the measured interval, or at least on the proven side of zero."""
        if self.predicted is None or len(self.pairs) < 2:
            return "none"
        change = paired_change(self.pairs, COVERAGE)
        if change.high - change.low > TOO_WIDE:
            return "too noisy"
        if change.low <= self.predicted <= change.high:
            return "agrees"
        if change.leaves_out_zero and self.predicted * change.percent > 0:
            return "sign only"
        return "**disagrees**"

    def cells(self) -> str:
        """A row of the table."""
        if self.predicted is None or len(self.pairs) < 2:
            return f"{self.failed or 'too few samples'} | | "
        change = paired_change(self.pairs, COVERAGE)
        measured = f"{change.percent:+.1f} ({change.low:+.1f} to {change.high:+.1f})"
        return f"{self.predicted:+.1f} | {measured} | {self.verdict()}"


@dataclass(frozen=True)
class Shape:
    """A published change, and two loads of simstack similar to what was compared."""

    title: str
    published: str
    machine: str
    before: Load
    after: Load


def _input(title: str, published: str, streams: int, rung: str) -> Shape:
    before, after = (Load("tcp", 4, streams, ((INPUT, value),)) for value in ("exclusive", rung))
    return Shape(f"TCP input, {title} against exclusive, {streams} streams", published, "four-2025", before, after)


def _mysql(published: str, *settings: Setting) -> Shape:
    one, two = (Load("unix", cpus, 11, (("unix.locking", "single"), *settings)) for cpus in (1, 2))
    how = "with Giant" if settings else "without Giant"
    return Shape(f"two CPUs against one, UNIX sockets, {how}", published, "xeon-2005", one, two)


def _direct(cpus: int, published: str) -> Shape:
    before, after = (Load("forward", cpus, 1, (("net.isr.dispatch", way),)) for way in ("deferred", "direct"))
    return Shape(
        f"direct against deferred, a stream through a router, {cpus} CPUs", published, "xeon-2005", before, after
    )


PUBLISHED = (
    _mysql("+7 % (2004)", ("debug.mpsafenet", "0")),
    _mysql("+42 % (2004)"),
    _direct(1, "+13.6 % (2005)"),
    _direct(2, "+15.7 % (2005)"),
    Shape(
        "a lock for each pcb against one for all, UNIX sockets, 8 streams on 8 CPUs",
        "-7.0 % (2006)",
        "sparc64-2006",
        Load("unix", 8, 8, (("unix.locking", "single"),)),
        Load("unix", 8, 8, (("unix.locking", "global"),)),
    ),
    _input("exclusive-socket", "-6 % (2025)", 1, "exclusive-socket"),
    _input("shared-socket", "-25 % (2025)", 1, "shared-socket"),
    _input("shared-socket-batch", "+5 % (2025)", 1, "shared-socket-batch"),
    _input("shared-socket", "+140 % (2025)", 10, "shared-socket"),
    _input("shared-socket-batch", "+160 % (2025)", 10, "shared-socket-batch"),
)


def rung_load(rung: str, cpus: int) -> Load:
    """A stream for each CPU, up to the max number."""
    return Load("tcp", cpus, min(cpus, STREAMS_MAX), ((INPUT, rung),))


def crossovers(rungs: Mapping[str, Mapping[int, float]]) -> list[str]:
    """The number of CPUs, among the simulated ones, at which one rung becomes better than another."""
    return [
        f"`{found.better}` is better than `{found.worse}` with {found.after} CPUs, and worse with {found.before}."
        for found in usl.overtakings(rungs)
    ]


def page(  # one argument for each table
    how: str,
    instructions: Mapping[str, float],
    defaults: Sequence[tuple[Load, float, list[float]]],
    rows: Sequence[Validated],
    shapes: Sequence[tuple[str, str, str, float]],
    rungs: Mapping[str, Mapping[int, float]],
    speed: str,
) -> str:
    """All of it, between the marks of docs/measured/simulator.md."""
    costs = ", ".join(f"{cost:.0f} ps in `{name}`" for name, cost in instructions.items())
    sections = (
        f"{how} Fitted cost of an instruction: {costs}; the median is used everywhere.",
        _rates(defaults),
        f"{_summary(rows)}\n\n{_changes(rows)}",
        "## Published results\n\n" + _shapes(shapes),
        "## Four locking schemes of TCP input on up to 64 simulated CPUs\n\n" + _ladder(rungs),
        "## Speed\n\n" + speed,
    )
    return "\n" + "\n\n".join(sections) + "\n\n"


def _table(head: Sequence[str], rows: Sequence[str]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {row} |" for row in rows)]
    return "\n".join(lines)


def _rates(defaults: Sequence[tuple[Load, float, list[float]]]) -> str:
    rows = [
        f"`{load.workload}` | {load.cpus} | {predicted:.0f} | {middle:.0f} {UNITS[load.workload]} | "
        f"{100 * (predicted / middle - 1):+.0f}"
        for load, predicted, measured in defaults
        for middle in [statistics.median(measured)]
    ]
    return _table(("the default", "CPUs", "simulated", "measured, median", "error, %"), rows)


def _summary(rows: Sequence[Validated]) -> str:
    verdicts = [row.verdict() for row in rows]
    known = [row for row in rows if row.predicted is not None and len(row.pairs) > 1]
    if not known:
        return "Nothing could be compared."
    errors = [abs(float(row.predicted or 0) - paired_change(row.pairs, COVERAGE).percent) for row in known]
    return (
        f"Of {len(known)} changes {verdicts.count('agrees')} agree: the simulated change is in the {COVERAGE:.0%} "
        f"interval of the measured one. {verdicts.count('sign only')} have the right sign only, "
        f"{verdicts.count('**disagrees**')} disagree, and {verdicts.count('too noisy')} were too noisy to "
        f"decide. Half of all errors are below {statistics.median(errors):.1f} points."
    )


def _changes(rows: Sequence[Validated]) -> str:
    head = ("", "workload", "CPUs", "simulated, %", "measured, %", "")
    return _table(head, [f"{row.label} | `{row.workload}` | {row.cpus} | {row.cells()}" for row in rows])


def _shapes(shapes: Sequence[tuple[str, str, str, float]]) -> str:
    rows = [
        f"{title} | {published} | {machine} | {change:+.1f} | "
        f"{'as published' if change * float(published.split()[0]) > 0 else '**opposite sign**'}"
        for title, published, machine, change in shapes
    ]
    return _table(("", "published", "machine", "simulated, %", "sign"), rows)


def _ladder(rungs: Mapping[str, Mapping[int, float]]) -> str:
    head = [f"`{INPUT}`", *(str(cpus) for cpus in LADDER_CPUS), "contention", "coherence", "peak"]
    rows = [
        " | ".join([f"`{rung}`", *(f"{rate / 1e6:.2f}" for rate in rates.values()), *_law(rates)])
        for rung, rates in rungs.items()
    ]
    words = "\n".join(f"- {line}" for line in crossovers(rungs)) or "None of them overtakes another by 5 %."
    return (
        "GB/s for each number of CPUs of `generic`, with a stream for each, at most 56; the Universal Scalability Law "
        f"that fits best, and the number of CPUs after which it falls.\n\n{_table(head, rows)}\n\n{words}"
    )


def _law(rates: Mapping[int, float]) -> list[str]:
    try:
        law = usl.fit(rates)
    except ValueError:
        return ["", "", "none"]
    peak = f"{law.peak:.0f}" if law.peak <= PEAK_MAX else "none"
    return [f"{law.contention:.3f}", f"{law.coherence:.5f}", peak]
