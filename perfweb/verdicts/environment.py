# SPDX-License-Identifier: BSD-2-Clause
"""The environment of a run: tables of the tunables of its variants and of the facts about its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfweb.lab.origins import Origin
from perfweb.runs.models import HostFacts, Run, Variant
from perfweb.runs.summaries import facts_of, lasting
from perfweb.verdicts.numbers import NOTHING
from perfweb.verdicts.results import RunResults

# Facts that most often explain a result come first; the long ones last.
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

    Each value is the effective one, as reported by the booted system, if there was a boot.
    """
    planned = sorted({name for variant in results.variants for name in variant.tunables})
    effective = {boot.variant_id: boot.effective_tunables for boot in results.boots if boot.effective_tunables}
    rows = []
    for name in planned:
        values = [{**variant.tunables, **effective.get(variant.pk, {})}.get(name) for variant in results.variants]
        rows.append(TableRow(name, [_plain(value) for value in values]))
    return sorted(rows, key=lambda row: not row.differs)


def host_table(run: Run) -> tuple[list[str], list[TableRow]]:
    """Return the hosts of a run, and a row for each known fact about any of them."""
    hosts = sorted(run.host_facts.all(), key=lambda host: ("left", "dut", "right").index(host.role))
    facts = sorted({name for host in hosts for name in host.facts}, key=_place)
    rows = [TableRow(fact.replace("_", " "), [_plain(host.facts.get(fact)) for host in hosts]) for fact in facts]
    return [f"{host.name}: {host.get_role_display()}" for host in hosts], rows


def side_rows(variants: Sequence[Variant]) -> list[TableRow]:
    """List the differences between variants of any runs, without their results: one query."""
    facts = facts_of({variant.run_id for variant in variants})
    hosts = {run: {role: lasting(found) for role, found in of_run.items()} for run, of_run in facts.items()}
    described = [_described(variant, hosts[variant.run_id]) for variant in variants]
    properties = list(dict.fromkeys(name for description in described for name in description))
    rows = [TableRow(name, [_plain(description.get(name)) for description in described]) for name in properties]
    return [row for row in rows if row.differs]


_MACHINE = ("cpu_model", "cpus")


def other_properties(sides: Sequence[Sequence[Variant]], by_commit: Sequence[bool]) -> list[tuple[str, ...]]:
    """Return what differs between the first side and each other one in words, where it may explain a difference:
    testbed, machine, kernel and build: one query, none within one run.

    Variants of one run differ in what its plan sets and in nothing else. So do builds of sides that are named by
    commits. A property that is not known of one side is no difference, but hosts that are known of one side only are.
    """
    if len({variant.run_id for side in sides for variant in side}) == 1:
        return [()] * (len(sides) - 1)
    hosts: dict[int, dict[str, Any]] = {}
    facts = HostFacts.objects.filter(run__in={variant.run_id for side in sides for variant in side})
    for run, role, name, found in facts.values_list("run_id", "role", "name", "facts"):
        hosts.setdefault(run, {})[role] = {**found, "name": name}
    known = [[_compared(variant, hosts.get(variant.run_id, {})) for variant in side] for side in sides]
    return [
        tuple(
            f"other {name}"
            for name in ("testbed", "machine", "kernel", "build")
            if not (name == "build" and by_commit[0] and by_commit[place])
            and _values(known[0], name) != _values(known[place], name)
        )
        for place in range(1, len(sides))
    ]


def _values(side: Sequence[Mapping[str, str]], name: str) -> set[str]:
    return {one[name] for one in side}


def _compared(variant: Variant, hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What is known of where and what a variant ran; only measurements depend on the host."""
    run, build = variant.run, variant.build
    known = hosts if run.testbed.origin == Origin.MEASURED else {}
    roles = sorted(known)
    return {
        "testbed": run.testbed.name,
        "machine": _plain([[role, *(known[role].get(fact) for fact in ("name", *_MACHINE))] for role in roles]),
        "kernel": _plain([[role, known[role].get("kernel")] for role in roles]),
        "build": _plain([build.revision, build.options]) if build else "",
    }


def _described(variant: Variant, hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    run, build = variant.run, variant.build
    return {
        "run": run.pk,
        "plan": run.plan.name,
        "testbed": run.testbed.name,
        "target": variant.get_target_display(),
        "revision": build.revision if build else None,
        "build options": variant.build_options,
        **variant.tunables,
        **{
            f"{role}: {fact.replace('_', ' ')}": value
            for role in ("left", "dut", "right")
            for fact, value in sorted(hosts.get(role, {}).items(), key=lambda item: _place(item[0]))
        },
    }


def changed_facts(run: Run) -> tuple[Run | None, list[TableRow]]:
    """Return the run before this one on its testbed, and the facts that changed since: role, name, before and now."""
    earlier = earlier_run(run)
    return earlier, fact_changes(_facts(earlier), _facts(run)) if earlier else []


def earlier_run(run: Run) -> Run | None:
    """Return the run before this one on its testbed that has facts about its hosts."""
    return Run.objects.filter(testbed=run.testbed_id, number__lt=run.number, host_facts__isnull=False).first()


def fact_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[TableRow]:
    """List the facts that differ between two environments, each given as facts by role; a missing role has no
    differences. An equal change on several hosts is one row.
    """
    changed: dict[tuple[str, str, str], list[str]] = {}
    for role in sorted(before.keys() & after.keys()):
        for fact in lasting(before[role]).keys() | lasting(after[role]).keys():
            was, now = (_plain(facts[role].get(fact)) for facts in (before, after))
            if was != now:
                changed.setdefault((fact, was, now), []).append(role)
    ordered = sorted(changed.items(), key=lambda item: (_place(item[0][0]), item[1]))
    return [
        TableRow(f"{fact.replace('_', ' ')} of {', '.join(roles)}", [was, now]) for (fact, was, now), roles in ordered
    ]


_PARTS = {"kernel": "the kernel changed", "cpu model": "the machine changed", "cpus": "the machine changed"}


def change_in_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return what changed most between two environments in three words, given as facts by role."""
    names = {row.name.partition(" of ")[0] for row in fact_changes(before, after)}
    return next((words for fact, words in _PARTS.items() if fact in names), "the hosts changed")


def _facts(run: Run) -> dict[str, Any]:
    return dict(run.host_facts.values_list("role", "facts"))


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
