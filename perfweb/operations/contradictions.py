# SPDX-License-Identifier: BSD-2-Clause
"""Checks the invariants in production: each violation in the database is a fault until it is gone."""

from collections.abc import Iterable

from perfweb.faults import services as faults
from perfweb.faults.models import Fault
from perfweb.runs.invariants import Check, violations

PREFIX = "invariant: "
ADVICE = "manage.py check_invariants lists all contradictions; report them, and do not change the database"

LOOK = faults.Task("check an invariant", "it is tried again; manage.py check_invariants shows the error: report it")


def look(checks: Iterable[Check]) -> None:
    """Store the violations found by some checks, and clear those that are gone."""
    for check in checks:
        task = faults.Task(PREFIX + check.__name__.strip("_").replace("_", " "), ADVICE, lasting=True)
        found = list[str]()
        if not faults.attempt(LOOK, check.__name__, lambda: found.extend(violations([check]))):  # noqa: B023
            continue
        Fault.objects.filter(task=task.name).exclude(item__in=map(faults.short, found)).delete()
        for problem in found:
            faults.note(task, problem, "the database contradicts itself")


def count() -> int:
    """Return the number of known violations."""
    return Fault.objects.filter(task__startswith=PREFIX).count()
