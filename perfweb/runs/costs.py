# SPDX-License-Identifier: BSD-2-Clause
"""The time of boots and samples, in seconds; for estimates only, if a testbed has no boots to learn from.

Measured in the lab of namespaces on two CPUs, where a boot is one play (`./dev bench lab`).
"""

from perfweb.runs.planfile import PlanSpec

BOOT_SECONDS = 4.7
SAMPLE_SECONDS = 0.11


def measuring(samples: int, seconds: float) -> float:
    """Seconds for that many samples of that many seconds."""
    return samples * (seconds + SAMPLE_SECONDS)


def of_sentinel(plan: PlanSpec, boot_seconds: float = BOOT_SECONDS) -> float:
    """Seconds for one boot of the sentinel with each server in each topology; zero without one."""
    return _of_boot(plan, plan.sentinel.samples, boot_seconds) if plan.sentinel else 0.0


def of_block(plan: PlanSpec, samples: int, boot_seconds: float = BOOT_SECONDS) -> float:
    """Seconds for one boot of every variant, with each server in each topology and that many counted samples of each
    test.
    """
    return len(plan.variants) * _of_boot(plan, samples, boot_seconds)


def _of_boot(plan: PlanSpec, samples: int, boot_seconds: float) -> float:
    tests = sum(measuring(samples + plan.discard, plan.seconds * test.measure.times) for test in plan.tests)
    return plan.groups * boot_seconds + tests
