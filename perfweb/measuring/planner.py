# SPDX-License-Identifier: BSD-2-Clause
"""The order of an experiment: the sequence of boots, and the measurements on each.

One boot serves one (variant, topology, server program), because a booted stack is one process. All boots of one
(topology, server) are consecutive, so that compared boots are close in time. Within them the variants alternate A B B
A, which cancels any drift that is linear in time. Or each block of one boot of every variant is shuffled by the
recorded seed: randomised complete blocks. A sentinel boots before, between and after them.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfweb.runs import costs
from perfweb.runs.catalogue import Test
from perfweb.runs.planfile import PlanSpec


@dataclass(frozen=True)
class PlannedMeasurement:
    """`discard` warm-up samples, then `samples` that count."""

    test: Test
    samples: int
    discard: int


@dataclass(frozen=True)
class PlannedBoot:
    """The boot at `position` in the run's order; a `block` has one boot of each variant, close together in time.

    A boot of the `sentinel` belongs to no block and has the number of the block that it precedes, or of the last.
    """

    position: int
    block: int
    variant: str
    topology: str
    server: str
    measurements: tuple[PlannedMeasurement, ...]
    sentinel: bool = False

    @property
    def group(self) -> tuple[str, str]:
        """The common properties of consecutive boots: topology and server program."""
        return self.topology, self.server


def plan_boots(plan: PlanSpec, seed: int) -> list[PlannedBoot]:
    """Return all boots of `plan` in order; the same seed gives the same order."""
    rng = random.Random(seed)  # noqa: S311 - an order to repeat, not a secret
    groups: dict[tuple[str, str], list[Test]] = {}
    for test in plan.tests:
        groups.setdefault(test.boots, []).append(test)
    boots = [boot for tests in groups.values() for boot in _watched(plan, _blocks(plan, tests, rng))]
    return [replace(boot, position=position) for position, boot in enumerate(boots)]


def _blocks(plan: PlanSpec, tests: Sequence[Test], rng: random.Random) -> list[PlannedBoot]:
    """Return the boots of one group, block by block, without positions, which depend on all groups."""
    names = [variant.name for variant in plan.variants]
    topology, server = tests[0].boots
    boots: list[PlannedBoot] = []
    for number in range(plan.boots):
        counted = _share(plan.samples, plan.boots, number)
        measurements = tuple(PlannedMeasurement(test, counted, plan.discard) for test in tests)
        order = _order(names, plan.order, number, rng)
        boots += [PlannedBoot(0, number, variant, topology, server, measurements) for variant in order]
    return boots


def _watched(plan: PlanSpec, boots: Sequence[PlannedBoot]) -> list[PlannedBoot]:
    """Return the boots of one group with those of the sentinel before, among and after them."""
    sentinel = plan.sentinel
    if sentinel is None:
        return list(boots)
    measurements = tuple(replace(planned, samples=sentinel.samples) for planned in boots[0].measurements)
    watched = []
    for place, boot in enumerate(boots):
        watching = replace(boot, variant=sentinel.variant, measurements=measurements, sentinel=True)
        watched += [watching, boot] if place % sentinel.every == 0 else [boot]
    return [*watched, watching]


def estimate(boots: Sequence[PlannedBoot], seconds: int) -> float:
    """Return the seconds that `boots` take in a plan with samples of `seconds` seconds."""
    measuring = sum(
        costs.measuring(planned.samples + planned.discard, seconds * planned.test.measure.times)
        for boot in boots
        for planned in boot.measurements
    )
    return len(boots) * costs.BOOT_SECONDS + measuring


def _share(total: int, parts: int, index: int) -> int:
    """Distribute `total` over `parts`; the first ones get the remainder."""
    return total // parts + (1 if index < total % parts else 0)


def _order(names: list[str], order: str, number: int, rng: random.Random) -> list[str]:
    if order == "random":
        return rng.sample(names, len(names))
    return names if number % 2 == 0 else names[::-1]
