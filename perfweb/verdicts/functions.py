# SPDX-License-Identifier: BSD-2-Clause
"""The functions of counted kernels that cost more or less on one side of a comparison than on the other."""

from __future__ import annotations

from collections.abc import Sequence

from perfweb.counted import comparison, costs
from perfweb.counted.comparison import LoadComparison
from perfweb.counted.costs import BootCosts, CostError
from perfweb.counted.loads import LABEL
from perfweb.jsontext import JsonError, read_json
from perfweb.runs.models import Artefact, ArtefactKind, MeasurementState
from perfweb.verdicts import names
from perfweb.verdicts.sides import Side


def compare_functions(base: Side, other: Side) -> list[LoadComparison]:
    """Compare the loads that both sides have, by function; none if these sides are not counted: one query."""
    if not any(test.startswith(LABEL) for test in base.tests & other.tests):
        return []
    before, after = _boots([base, other])
    loads = names.in_order(before.keys() & after.keys())
    return [comparison.compare(load, before[load], after[load]) for load in loads]


def _boots(compared: Sequence[Side]) -> list[dict[str, list[BootCosts]]]:
    """Read what each boot of each side costs, by load."""
    rows = (
        Artefact.objects.filter(
            kind=ArtefactKind.TOOL_OUTPUT,
            boot__variant__in=[variant for side in compared for variant in side.variants],
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
    return [costs.merged(boot for variant in side.variants for boot in found.get(variant.pk, [])) for side in compared]


def _read(content: bytes) -> BootCosts | None:
    """Return the costs that an output has, as an import or a sample has them; None for one that was cut because it was
    too large.
    """
    of_sample = content.partition(b"\n-- stdout\n")[2].partition(b"\n")[0]
    try:
        return costs.read(read_json(of_sample or content))
    except (CostError, JsonError):
        return None
