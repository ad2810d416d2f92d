# SPDX-License-Identifier: BSD-2-Clause
"""Decides before each block of boots whether the verdicts of a run are settled, from the database alone.

The rule is that of perfweb.stats.sequential, for each test of a group and each variant besides the baseline, with the
plan's margin and confidence. A group ends with its last decision, so that its blocks stay complete.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from perfweb.measuring.planner import PlannedBoot
from perfweb.runs.models import Run, Sample
from perfweb.runs.planfile import DECIDED, PlanSpec
from perfweb.stats.sequential import Block, Decision, decide

GIVEN_UP = 3
"""Blocks after which a comparison is given up if one of its sides has no results at all."""


@dataclass(frozen=True)
class Settled:
    """A group of boots that needs no further blocks; `verdicts` by variant and test."""

    group: tuple[str, str]
    blocks: int
    verdicts: dict[tuple[str, str], str]

    def words(self, most: int, minutes: float) -> str:
        """Return the message of a run about it; `most` is the number of planned blocks."""
        server = f"{self.group[0]}, {self.group[1]}"
        return f"{server}: decided after {self.blocks} of {most} boots of each variant, {minutes:.0f} min saved"


def settled(run: Run, plan: PlanSpec, planned: Sequence[PlannedBoot], following: PlannedBoot) -> Settled | None:
    """Return the decision if the next boot begins a block that is not needed any more, else None.

    `planned` are all boots of the run.
    """
    if plan.stop != DECIDED or following.sentinel or following.block < 2:
        return None
    group = [boot for boot in planned if boot.group == following.group and not boot.sentinel]
    if following.position != min(boot.position for boot in group if boot.block == following.block):
        return None
    found = decisions(run, plan, [boot for boot in group if boot.block < following.block])
    if any(decision is not None and not decision.decided for decision in found.values()):
        return None
    verdicts = {key: str(decision.verdict) if decision else "not measured" for key, decision in found.items()}
    return Settled(following.group, following.block, verdicts)


def closing(planned: Sequence[PlannedBoot], unneeded: PlannedBoot) -> PlannedBoot | None:
    """Return the sentinel that ends a group when this boot and those after it are not needed.

    None if the last boot was a sentinel, or if the plan has none.
    """
    if planned[unneeded.position - 1].sentinel:
        return None
    after = planned[unneeded.position :]
    return next((boot for boot in after if boot.sentinel and boot.group == unneeded.group), None)


def decisions(run: Run, plan: PlanSpec, measured: Sequence[PlannedBoot]) -> dict[tuple[str, str], Decision | None]:
    """Judge some blocks of one group, without its sentinels, by variant and test; None for a comparison that is
    given up.
    """
    values: dict[tuple[str, str, int], list[float]] = {}
    directions: dict[str, str] = {}
    blocks = {boot.position: boot.block for boot in measured}
    rows = Sample.objects.counted().filter(measurement__boot__run=run, measurement__boot__position__in=blocks)
    columns = ("measurement__boot__variant__name", "measurement__test", "measurement__boot__position")
    for variant, test, position, value, direction in rows.values_list(*columns, "value", "direction"):
        values.setdefault((variant, test, blocks[position]), []).append(value)
        directions[test] = direction
    tests = [planned.test.name for planned in measured[0].measurements]
    count = 1 + max(blocks.values())
    return {
        (variant.name, test): _decision(
            [_block(values, (plan.baseline, variant.name), test, block) for block in range(count)],
            plan,
            directions.get(test, "higher"),
        )
        for variant in plan.variants
        if variant.name != plan.baseline
        for test in tests
    }


def _block(values: dict[tuple[str, str, int], list[float]], pair: tuple[str, str], test: str, block: int) -> Block:
    """Return the boots of two variants in a block, without those that have no results."""
    sides = [values.get((variant, test, block)) for variant in pair]
    return ([sides[0]] if sides[0] else [], [sides[1]] if sides[1] else [])


def _decision(blocks: Sequence[Block], plan: PlanSpec, direction: str) -> Decision | None:
    if len(blocks) >= GIVEN_UP and not (any(a for a, _ in blocks) and any(b for _, b in blocks)):
        return None
    return decide(blocks, plan.margin, 1 - plan.confidence / 100, direction)
