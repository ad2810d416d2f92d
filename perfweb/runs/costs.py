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


def of_sentinel(plan: PlanSpec, boot_seconds: float = BOOT_SECONDS) -> float:
    """Seconds that one boot of the sentinel takes with each server in each topology; zero without one."""
    return _of_boot(plan, plan.sentinel.samples, boot_seconds) if plan.sentinel else 0.0


def of_block(plan: PlanSpec, samples: int, boot_seconds: float = BOOT_SECONDS) -> float:
    """Seconds that one boot of every variant takes, with each server in each topology and so many samples of each test
    that count.
    """
    return len(plan.variants) * _of_boot(plan, samples, boot_seconds)


def _of_boot(plan: PlanSpec, samples: int, boot_seconds: float) -> float:
    tests = sum(measuring(samples + plan.discard, plan.seconds * test.measure.times) for test in plan.tests)
    return plan.groups * boot_seconds + tests
