# SPDX-License-Identifier: BSD-2-Clause
"""The functions of counted kernels that cost more or less on one side of a comparison than on the other."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from perfweb.counted import comparison, costs
from perfweb.counted.comparison import LoadComparison
from perfweb.counted.costs import BootCosts, CostError
from perfweb.counted.loads import LABEL
from perfweb.counted.rows import in_words as counted_words
from perfweb.jsontext import JsonError, read_json
from perfweb.runs.models import Artefact, ArtefactKind, MeasurementState, Variant
from perfweb.verdicts import names


def compare_functions(
    base: Sequence[Variant], other: Sequence[Variant], tests: Collection[str]
) -> list[LoadComparison]:
    """Compare the loads of the variants of both sides, by function: one query, and none if no test is counted."""
    if not any(test.startswith(LABEL) for test in tests):
        return []
    before, after = _boots([base, other])
    loads = names.in_order(before.keys() & after.keys())
    return [comparison.compare(load, before[load], after[load]) for load in loads]


def in_words(loads: Sequence[LoadComparison]) -> str:
    """Return how many loads cost more or less, and the largest difference of a function; empty for no loads."""
    if not loads:
        return ""
    words = f"{counted_words(loads)} loads"
    found = [(load, one) for load in loads for one in load.functions]
    if found:
        load, one = max(found, key=lambda pair: abs(pair[1].cost.instructions))
        words += f"; {one.name} {one.cost.instructions:+.4f} instructions in {load.name}"
    return words


def _boots(compared: Sequence[Sequence[Variant]]) -> list[dict[str, list[BootCosts]]]:
    """Read what each boot of each side costs, by load."""
    rows = (
        Artefact.objects.filter(
            kind=ArtefactKind.TOOL_OUTPUT,
            boot__variant__in=[variant for side in compared for variant in side],
            measurement__test__startswith=LABEL,
            measurement__state=MeasurementState.OK,
        )
        .order_by("run_id", "boot__position", "boot__attempt")
        .values_list("boot__variant_id", "measurement__test", "content")
    )
    found: dict[int, list[dict[str, BootCosts]]] = {}
    for variant, test, content in rows:
        if (of_boot := _read(bytes(content))) is not None:
            found.setdefault(variant, []).append({test: of_boot})
    return [costs.merged(boot for variant in side for boot in found.get(variant.pk, [])) for side in compared]


def _read(content: bytes) -> BootCosts | None:
    """Return the costs that an output has, as an import or a sample has them; None for one that was cut because it was
    too large.
    """
    of_sample = content.partition(b"\n-- stdout\n")[2].partition(b"\n")[0]
    try:
        return costs.read(read_json(of_sample or content))
    except (CostError, JsonError):
        return None
