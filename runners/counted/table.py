# SPDX-License-Identifier: BSD-2-Clause
"""A comparison in words and numbers, for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runners.counted.comparison import RESOLUTION, FunctionDifference, LoadComparison, Verdict, overall
from runners.counted.counts import Cost
from runners.counted.loads import unit

SHOWN_FUNCTIONS = 20
SIGN = {Verdict.MORE: "▲", Verdict.FEWER: "▼", Verdict.EQUAL: "="}
KINDS = dict(zip(Cost._fields, ("instructions", "locked instructions", "memory accesses"), strict=True))
"""The kinds of cost, with their names."""


def lines(loads: Sequence[LoadComparison], boots: int) -> Iterator[str]:
    """Returns the comparison as lines."""
    yield f"counted, not measured: instructions of an emulated CPU; {boots} boots of each kernel"
    by_verdict = overall(loads)
    for load in loads:
        if load.functions:
            yield ""
            yield from _load(load)
    if equal := [load for load in by_verdict[Verdict.EQUAL] if not load.functions]:
        yield ""
        yield "= equal: no difference is attributed to a function, with instructions for each unit in the base"
        for load in equal:
            yield f"    {load.name:<34}{load.base.instructions:>14.2f}  {unit(load.name)}"
    if unexplained := [load for load in loads if load.unexplained]:
        yield ""
        yield "? not attributable: instructions of some windows only, in the mean for each unit"
        for load in unexplained:
            yield f"    {load.name:<34}{load.unexplained:>+14.2f}  {unit(load.name)}"
    yield ""
    yield ", ".join(f"{len(found)} {verdict.value}" for verdict, found in by_verdict.items()) + " (counted)"


def _load(load: LoadComparison) -> Iterator[str]:
    total = load.attributed
    about = {kind: value for kind, value in zip(KINDS.values(), total, strict=True) if abs(value) >= RESOLUTION}
    words = ", ".join(f"{value:+.2f} {kind}" for kind, value in about.items()) or "the functions cancel out"
    yield f"{SIGN[load.verdict]} {load.name}: {words} for each {unit(load.name)}"
    share = 100 * (load.patched.instructions - load.base.instructions) / load.base.instructions
    whole = load.patched.instructions - load.base.instructions
    yield (
        f"    whole path {load.base.instructions:.2f} → {load.patched.instructions:.2f} ({whole:+.2f}, {share:+.3f} %;"
        f" chance explains {load.spread:.2f})"
    )
    yield f"    {'function':<34}{'instructions':>14}{'locked':>12}{'accesses':>12}"
    for one in load.functions[:SHOWN_FUNCTIONS]:
        yield f"    {one.name:<34}" + "".join(
            f"{number(value):>{width}}" for value, width in zip(one.cost, (14, 12, 12), strict=True)
        )
    if (more := len(load.functions) - SHOWN_FUNCTIONS) > 0:
        yield f"    {more} more functions"


def number(value: float) -> str:
    """Returns a difference of one unit; `=` if it is not attributed."""
    return f"{value:+.4f}" if value else "="


def document(loads: Sequence[LoadComparison], boots: int) -> dict[str, Any]:
    """Returns the comparison as JSON has it: costs of one unit; `counted` marks that nothing here is measured."""
    return {
        "counted": True,
        "boots": boots,
        "loads": [
            {
                "name": load.name,
                "unit": unit(load.name),
                "verdict": load.verdict.value,
                "base": load.base._asdict(),
                "patched": load.patched._asdict(),
                "spread": load.spread,
                "unexplained": load.unexplained,
                "attributed": load.attributed._asdict(),
                "functions": [_function(one) for one in load.functions],
            }
            for load in loads
        ],
    }


def _function(one: FunctionDifference) -> dict[str, Any]:
    return {"name": one.name, **one.cost._asdict()}
