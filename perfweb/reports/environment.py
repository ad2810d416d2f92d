# SPDX-License-Identifier: BSD-2-Clause
"""What ran where: tables of the tunables of a run's variants and of the facts about its hosts."""

from __future__ import annotations

from dataclasses import dataclass

from perfweb.reports.numbers import NOTHING
from perfweb.reports.results import RunResults
from perfweb.runs.models import Run

# Facts that explain a result most often come first; the long ones last.
_FIRST = ("kernel", "cpu_model", "cpus", "pinned_to", "memory_kib", "governor", "clocksource", "congestion_control")
_LAST = ("links", "versions", "mitigations", "command_line")


@dataclass(frozen=True)
class TableRow:
    """One property and its value in each column."""

    name: str
    values: list[str]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def tunable_rows(results: RunResults) -> list[TableRow]:
    """List the tunables that the plan sets on any variant, those that differ first.

    Each value is the effective one, which the booted system told itself, where there was a boot.
    """
    asked = sorted({name for variant in results.variants for name in variant.tunables})
    effective = {boot.variant_id: boot.effective_tunables for boot in results.boots if boot.effective_tunables}
    rows = []
    for name in asked:
        values = [{**variant.tunables, **effective.get(variant.pk, {})}.get(name) for variant in results.variants]
        rows.append(TableRow(name, [_plain(value) for value in values]))
    return sorted(rows, key=lambda row: not row.differs)


def host_table(run: Run) -> tuple[list[str], list[TableRow]]:
    """Return the hosts of a run, and a row for each fact that is known about any of them."""
    hosts = sorted(run.host_facts.all(), key=lambda host: ("left", "dut", "right").index(host.role))
    facts = sorted({name for host in hosts for name in host.facts}, key=_place)
    rows = [TableRow(fact.replace("_", " "), [_plain(host.facts.get(fact)) for host in hosts]) for fact in facts]
    return [f"{host.name}: {host.get_role_display()}" for host in hosts], rows


def _place(fact: str) -> tuple[int, str]:
    if fact in _FIRST:
        return _FIRST.index(fact), fact
    return len(_FIRST) + 1 + _LAST.index(fact) if fact in _LAST else len(_FIRST), fact


def _plain(value: object) -> str:
    """Return a JSON value as words."""
    if value is None:
        return NOTHING
    if isinstance(value, dict):
        return "; ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)
