# SPDX-License-Identifier: BSD-2-Clause
"""What boots and samples cost, in seconds; only for estimates, where a testbed does not know better of its own boots.

Seen in the lab of namespaces on two CPUs, where a boot is one play (`./dev bench lab`).
"""

from perfweb.runs.planfile import PlanSpec

BOOT_SECONDS = 4.7
SAMPLE_SECONDS = 0.11


def measuring(samples: int, seconds: float) -> float:
    """Seconds that so many samples of so many seconds take."""
    return samples * (seconds + SAMPLE_SECONDS)


def of_block(plan: PlanSpec, samples: int, boot_seconds: float = BOOT_SECONDS) -> float:
    """Seconds that one boot of every variant takes, with each server in each topology and so many samples of each test
    that count.
    """
    tests = sum(measuring(samples + plan.discard, plan.seconds * test.measure.times) for test in plan.tests)
    return len(plan.variants) * (plan.groups * boot_seconds + tests)
