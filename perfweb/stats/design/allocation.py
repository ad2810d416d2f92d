# SPDX-License-Identifier: BSD-2-Clause
"""The best use of testbed time: more boots, or more samples on each boot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfweb.stats.design.power import detectable

FEWEST_BOOTS = 2
"""Of each variant; fewer have no verdict (perfweb.stats.comparison.MINIMUM_BOOTS)."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviations in percent of the mean: between boots, and between the samples of a boot."""

    boots: float
    samples: float

    def of_mean(self, samples: int) -> float:
        """Return the standard deviation of the mean of a boot with so many samples."""
        return math.sqrt(self.boots**2 + self.samples**2 / samples)

    def visible(self, boots: int, samples: int, confidence: float) -> float:
        """Return the smallest change, in percent, that so many boots of each variant show four times out of five, with
        so many samples on each: power.detectable() of the means of boots.
        """
        return detectable(self.of_mean(samples), boots, boots, confidence)

    def samples_per_boot(self, boot_seconds: float, sample_seconds: float) -> float:
        """Return how many samples on each boot make the variance of a variant's mean least in a given time.

        sqrt(cost of a boot / cost of a sample * variance of samples / variance of boots): the optimum of two-stage
        sampling (Cochran 1977, "Sampling Techniques", section 10.6). Infinite where boots do not differ.
        """
        if self.boots == 0:
            return math.inf
        return math.sqrt(boot_seconds / sample_seconds) * self.samples / self.boots


@dataclass(frozen=True, slots=True)
class Design:
    """So many boots of each variant, with so many samples of each test on each."""

    boots: int
    samples: int


def allocate(
    noises: Sequence[Noise],
    budget: float,
    seconds: Callable[[int], float],
    confidence: float,
    most: Design,
) -> Design | None:
    """Return the design that shows the smallest changes within a budget, None where two boots do not fit.

    `seconds(samples)` is what one boot of every variant takes with so many samples of each test; `budget` has the same
    unit. Of several tests, whose boots are common, the geometric mean of the smallest visible changes decides. All
    numbers of samples are tried, so that warm-up and the few degrees of freedom of few boots count, too; with many
    boots it is Noise.samples_per_boot().
    """
    best: tuple[float, int, Design] | None = None
    for samples in range(1, most.samples + 1):
        boots = min(int(budget // seconds(samples)), most.boots)
        if boots < FEWEST_BOOTS:
            break
        score = sum(math.log(max(noise.visible(boots, samples, confidence), 1e-9)) for noise in noises)
        found = (round(score, 9), samples, Design(boots, samples))
        if best is None or found[:2] < best[:2]:
            best = found
    return best[2] if best else None
