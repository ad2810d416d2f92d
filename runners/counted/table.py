# SPDX-License-Identifier: BSD-2-Clause
"""A comparison in words and numbers, for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from perfweb.counted import costs
from perfweb.counted.comparison import RESOLUTION, FunctionDifference, LoadComparison, Verdict, overall
from perfweb.counted.costs import BootCosts
from perfweb.counted.loads import unit
from perfweb.counted.rows import KINDS, SIGN, in_words, number
from runners.counted.command import Result

SHOWN_FUNCTIONS = 20


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
    yield f"{in_words(loads)} (counted)"


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


def document(result: Result) -> dict[str, Any]:
    """Returns the comparison as JSON has it: differences of one unit, and of each boot what its windows cost.

    `counted` marks that nothing here is measured. The service imports it (perfweb/imports/counted.py).
    """
    return {
        "counted": True,
        "kernels": {side: asdict(made) for side, made in result.kernels.items()},
        "boots": max(map(len, result.sides.values()), default=0),
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
            for load in result.loads
        ],
        "sides": {
            name: [_boot(seed, boot) for seed, boot in enumerate(side, 1)] for name, side in result.sides.items()
        },
    }


def _boot(seed: int, boot: Mapping[str, BootCosts]) -> dict[str, Any]:
    return {"seed": seed, "loads": {name: costs.written(found) for name, found in boot.items()}}


def _function(one: FunctionDifference) -> dict[str, Any]:
    return {"name": one.name, **one.cost._asdict()}
