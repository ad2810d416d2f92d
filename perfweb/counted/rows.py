# SPDX-License-Identifier: BSD-2-Clause
"""A comparison as the texts of the template counted/comparison.html."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfweb.counted.comparison import LoadComparison, Verdict, overall
from perfweb.counted.costs import Cost
from perfweb.counted.loads import unit

SIGN = {Verdict.MORE: "▲", Verdict.FEWER: "▼", Verdict.EQUAL: "="}
KINDS = dict(zip(Cost._fields, ("instructions", "locked instructions", "memory accesses"), strict=True))
"""The kinds of cost, with their names."""
CLASSES = {Verdict.MORE: "slower", Verdict.FEWER: "faster", Verdict.EQUAL: "equivalent"}
"""Classes of the style sheets, by verdict."""


def of_comparison(loads: Sequence[LoadComparison], base: str = "Base", other: str = "Patched") -> dict[str, Any]:
    """Return what the template shows of the comparison of each load; `base` and `other` name the sides."""
    return {
        "before": base,
        "after": other,
        "summary": in_words(loads),
        "loads": [_load(load) for load in loads],
        "differing": [
            {
                "name": load.name,
                "unit": unit(load.name),
                "functions": [_costs(one.name, one.cost) for one in load.functions],
            }
            for load in loads
            if load.functions
        ],
        "unexplained": [
            {"name": load.name, "instructions": f"{load.unexplained:+.2f}", "unit": unit(load.name)}
            for load in loads
            if load.unexplained
        ],
    }


def in_words(loads: Sequence[LoadComparison]) -> str:
    """Return how many loads have each verdict: "1 more, 0 fewer, 15 equal"."""
    return ", ".join(f"{len(found)} {verdict.value}" for verdict, found in overall(loads).items())


def number(value: float) -> str:
    """Return a difference of one unit; `=` if it is not attributed."""
    return f"{value:+.4f}" if value else "="


def _load(load: LoadComparison) -> dict[str, str]:
    before, after = load.base.instructions, load.patched.instructions
    return {
        "unit": unit(load.name),
        "base": f"{before:.2f}",
        "patched": f"{after:.2f}",
        "spread": f"{load.spread:.2f}",
        **_costs(load.name, load.attributed),
        "verdict": f"{SIGN[load.verdict]} {load.verdict.value}",
        "css": CLASSES[load.verdict],
    }


def _costs(name: str, cost: Cost) -> dict[str, str]:
    return {"name": name, **dict(zip(KINDS, map(number, cost), strict=True))}
