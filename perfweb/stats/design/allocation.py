# SPDX-License-Identifier: BSD-2-Clause
"""The best use of testbed time: more boots, or more samples on each boot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfweb.stats.design.power import detectable

FEWEST_BOOTS = 2
"""Min boots of each variant; fewer have no verdict (perfweb.stats.comparison.MINIMUM_BOOTS)."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviations in percent of the mean: between boots, and between the samples of a boot."""

    boots: float
    samples: float

    def of_mean(self, samples: int) -> float:
        """Return the standard deviation of the mean of a boot with that many samples."""
        return math.sqrt(self.boots**2 + self.samples**2 / samples)

    def visible(self, boots: int, samples: int, confidence: float) -> float:
        """Return the smallest change, in percent, that this many boots of each variant, with this many samples on each,
        detect with a power of 80 %: power.detectable() of the means of boots.
        """
        return detectable(self.of_mean(samples), boots, boots, confidence)

    def samples_per_boot(self, boot_seconds: float, sample_seconds: float) -> float:
        """Return the number of samples on each boot that minimises the variance of a variant's mean in a given time.

        sqrt(cost of a boot / cost of a sample * variance of samples / variance of boots): the optimum of two-stage
        sampling (Cochran 1977, "Sampling Techniques", section 10.6). Infinite if boots do not differ.
        """
        if self.boots == 0:
            return math.inf
        return math.sqrt(boot_seconds / sample_seconds) * self.samples / self.boots


@dataclass(frozen=True, slots=True)
class Design:
    """Numbers of boots of each variant, and of samples of each test on each boot."""

    boots: int
    samples: int


def allocate(
    noises: Sequence[Noise],
    budget: float,
    seconds: Callable[[int], float],
    confidence: float,
    most: Design,
) -> Design | None:
    """Return the design that detects the smallest changes within a budget, None if two boots do not fit.

    `seconds(samples)` is the time of one boot of every variant with that many samples of each test; `budget` has the
    same unit. Several tests share their boots; then the geometric mean of the smallest detectable changes decides. All
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
