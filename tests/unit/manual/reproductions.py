# SPDX-License-Identifier: BSD-2-Clause
"""docs/reference/reproductions.md, generated from the published figures and from what the project has recorded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings

from perfweb.reports.published import Experiment, experiments
from perfweb.reports.recorded import recorded
from perfweb.runs.planfile import read_plan

INTRODUCTION = """\
# Reproductions of published experiments

What did each published experiment find, and what does its repetition find here? The page `/reproductions/`
has the same, beside the newest runs of the site.

`./dev test tests/unit/manual/test_reference.py --write` generates this page from
`perfweb/reports/published.yaml` and the tables of [strategies](../measured/knobs.md#published-comparisons) and
[predictions](../measured/simulator.md#published-results).

Effects are changes of the compared variant: in percent, or as a factor where the value is at least tenfold. Hosts,
links and kernels differ by up to twenty years, so compare signs and order, not sizes.
"""


def reproductions(_: pytest.MonkeyPatch) -> str:
    """Write the page."""
    return "\n".join([INTRODUCTION, *(line for one in experiments() for line in _experiment(one))])


def _experiment(one: Experiment) -> Iterator[str]:
    yield from (f"## {one.year}: {one.title}", "", f"{one.claim} {one.source}.", "")
    yield from (
        f"- **Set-up then**: {one.setup}",
        f"- **Set-up here**: {one.here} (plan `{one.name}`)",
        f"- **Differences**: {one.differs}",
    )
    if one.simulated:
        yield f"- **Simulated**: plan `{one.simulated}`"
    yield from ("", "| test | variant | against | published |", "|---|---|---|---|")
    plan = read_plan((settings.BASE_DIR / f"perfweb/runs/plans/{one.name}.yaml").read_text(encoding="utf-8"))
    for effect in one.effects:
        note = f" ({effect.note})" if effect.note else ""
        yield f"| `{effect.test}` | {effect.variant} | {effect.base or plan.baseline} | {effect.change.words}{note} |"
    yield ""
    if rows := recorded(one.year):
        yield from ("| recorded by the project | published | here | how | sign |", "|---|---|---|---|---|")
        yield from (f"| {row.title} | {row.published} | {row.here} | {row.kind} | {row.sign} |" for row in rows)
    else:
        yield "The project has recorded no result of it beside the runs of a site."
    yield ""
