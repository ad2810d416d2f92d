# SPDX-License-Identifier: BSD-2-Clause
"""The boots and samples of a plan with a time budget (`budget: 30 min`)."""

from statistics import fmean

from perfweb.lab.models import Testbed
from perfweb.runs import costs
from perfweb.runs.calibration import noises
from perfweb.runs.planfile import MOST_BOOTS, MOST_SAMPLES, PlanSpec, SizeError, read_plan, resized
from perfweb.stats.design.allocation import Design, Noise, allocate

UNKNOWN = Noise(boots=1.0, samples=1.0)
"""Noise in percent of a test that was never calibrated on the testbed; only the ratio of the two matters."""

MOST_PER_BOOT = MOST_SAMPLES // MOST_BOOTS


def within_budget(text: str, testbed: Testbed) -> str:
    """Return the text of a plan with the boots and samples that detect the smallest changes on a testbed in the plan's
    time; without a budget the text itself. Raises PlanError, or SizeError for a budget that is too short.
    """
    plan = read_plan(text)
    if plan.budget is None:
        return text
    known = noises(testbed, [test.name for test in plan.tests], layouts=plan.layouts > 1)
    of_tests = [known[test.name][0] if test.name in known else UNKNOWN for test in plan.tests]
    boot_seconds = fmean([seconds for _, seconds in known.values()]) if known else costs.BOOT_SECONDS
    design = _design(plan, plan.budget, of_tests, boot_seconds)
    return resized(text, {"boots": str(design.boots), "samples": str(design.boots * design.samples)})


def _design(plan: PlanSpec, minutes: float, noise: list[Noise], boot_seconds: float) -> Design:
    sentinel = costs.of_sentinel(plan, boot_seconds)
    of_block = sentinel * len(plan.variants) / plan.sentinel.every if plan.sentinel else 0.0

    def seconds(samples: int) -> float:
        return costs.of_block(plan, samples, boot_seconds) + of_block

    most = Design(MOST_BOOTS, MOST_PER_BOOT)
    found = allocate(noise, 60 * minutes - sentinel, seconds, plan.confidence, most)
    if found is None:
        shortest = (2 * seconds(1) + sentinel) / 60
        raise SizeError(f"a budget of {minutes:g} min is too short: two boots of each variant take {shortest:.1f} min")
    return found
