# SPDX-License-Identifier: BSD-2-Clause
"""The page of `./dev bench knobs`: a table of strategies and workloads, and the published comparisons."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfweb.stats.paired import detectable_change, paired_change
from tests.stack.control import LIMITS
from tests.stack.machine import here_and_now

COVERAGE = 0.95
MOST = 100  # percent; a larger undetected difference has no exact bound in the table


@dataclass(frozen=True)
class Cell:
    """A value of a knob, its base settings, a workload, and pairs of rates: the default's, and the value's."""

    label: str
    base: Mapping[str, str]
    workload: str
    pairs: tuple[tuple[float, float], ...]

    @property
    def strategy(self) -> str:
        """The first column: the setting."""
        beside = ", ".join(f"`{name}={value}`" for name, value in self.base.items())
        return f"`{self.label}`" + (f" beside {beside}" if beside else "")

    @property
    def proven(self) -> bool:
        return len(self.pairs) > 1 and paired_change(self.pairs, COVERAGE).leaves_out_zero

    def text(self) -> str:
        """The difference and its interval in percent, or the smallest detectable one."""
        if len(self.pairs) < 2:
            return "failed"
        if not self.proven:
            size = detectable_change(self.pairs, COVERAGE)
            return f"none ({size:.0f})" if size < MOST else f"none (>{MOST})"
        change = paired_change(self.pairs, COVERAGE)
        return f"**{change.percent:+.1f}** ({change.low:+.1f} to {change.high:+.1f})"


@dataclass(frozen=True)
class Sign:
    """A published comparison, as measured here: `cell` is of the side that was faster."""

    title: str
    published: str
    cell: Cell

    def verdict(self) -> str:
        """Whether the sign is the published one."""
        if not self.cell.proven:
            return "not proven" if self.cell.pairs else "failed"
        return "as published" if paired_change(self.cell.pairs, COVERAGE).percent > 0 else "opposite sign"


@dataclass(frozen=True)
class Measured:
    """The conditions: rounds of the table, pairs of the signs, seconds of a sample, total minutes, and noise."""

    rounds: int
    pairs: int
    seconds: float
    minutes: float
    noise: str

    def sentence(self) -> str:
        """The date, the machine, and the conditions."""
        return (
            f"Measured {here_and_now()}, in {self.minutes:.0f} minutes: samples of {self.seconds:g} s, "
            f"{self.rounds} rounds of the table, {self.pairs} pairs of boots of the published comparisons; "
            f"{self.noise}."
        )


def table_of_cells(cells: Sequence[Cell], units: Mapping[str, str]) -> str:
    """Strategies down, workloads across, in the order of `units`; the defaults' medians first."""
    columns = [name for name in units if any(cell.workload == name for cell in cells)]
    lines = [["", *columns], ["---"] * (1 + len(columns))]
    lines.append(["the default", *(_default(cells, name, units[name]) for name in columns)])
    for strategy in dict.fromkeys(cell.strategy for cell in cells):
        found = {cell.workload: cell.text() for cell in cells if cell.strategy == strategy}
        lines.append([strategy, *(found.get(name, "") for name in columns)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _default(cells: Sequence[Cell], workload: str, unit: str) -> str:
    rates = [pair[0] for cell in cells if cell.workload == workload and not cell.base for pair in cell.pairs]
    return f"{float(f'{statistics.median(rates):.3g}'):g} {unit}" if rates else ""


def table_of_signs(signs: Sequence[Sign]) -> str:
    """Each published comparison, with the result here."""
    lines = ["| | published | here, % | pairs | sign |", "|---|---|---|---|---|"]
    for sign in signs:
        words = (sign.title, sign.published, sign.cell.text(), str(len(sign.cell.pairs)), sign.verdict())
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines)


def chances(cells: Sequence[Cell]) -> str:
    """How many differences are proven, and how many are expected by chance."""
    measured = [cell for cell in cells if len(cell.pairs) > 1]
    proven = sum(cell.proven for cell in measured)
    return (
        f"Of {len(measured)} cells {proven} have a proven difference; "
        f"if no knob had an effect, chance alone would show about {len(measured) * (1 - COVERAGE):.0f}."
    )


def report(cells: Sequence[Cell], signs: Sequence[Sign], units: Mapping[str, str]) -> str:
    """Print the results of both tables."""
    tables = [f"{table_of_cells(cells, units)}\n\n{chances(cells)}"] if cells else []
    return "\n\n".join([*tables, *([table_of_signs(signs)] if signs else [])])


PAGE = """# Effects of dispatch and locking strategies

What does each strategy of dispatch and locking change on this machine?

`./dev bench knobs --write` makes this page. {how}

Each number is the change in percent against the default, or against the default with the settings after *beside*.
It compares the rates of two boots of the same round, with a {coverage:.0%} interval (paired t of the logarithms).
**Bold** is proven: the interval excludes zero. *none (4)* means that no difference is proven, and that one of 4 %
would have been detected in four runs of five. An empty cell cannot differ, and was not measured. {chances}

A sample is void, and taken again, if just before or after it the CPUs were {limits} than at their best
([speed.md](speed.md) describes the test).

All workloads run in memory, on all CPUs of this machine, so effects that need more CPUs cannot appear. Numbers in
column heads are connections or threads.

| workload | content |
|---|---|
| TCP, RR, CRR | bulk transfer, round trips, and connections with one request each, inside one process |
| chargen | bulk transfer of single segments from a separate thread, in bursts as from a device |
| forward | a million small packets per second, divided by the CPU seconds spent |
| received | as many packets as the stack can receive |
| UDP in, UDP out | datagrams that a program receives under overload; datagrams that it sends |
| UNIX, UNIX 1:1 | unixbench with the workload of MySQL, and with the simple one |

{cells}

## Published comparisons

Pairs of consecutive boots. *sign* compares the direction here with the published one.

{signs}
"""


def page(cells: Sequence[Cell], signs: Sequence[Sign], units: Mapping[str, str], measured: Measured) -> str:
    """docs/measured/knobs.md."""
    return PAGE.format(
        how=measured.sentence(), coverage=COVERAGE, limits=LIMITS, chances=chances(cells),
        cells=table_of_cells(cells, units), signs=table_of_signs(signs),
    )  # fmt: skip
