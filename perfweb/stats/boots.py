# SPDX-License-Identifier: BSD-2-Clause
"""Boots as the unit of replication: whether they differ, and at which level a comparison may count its samples.

Samples of one boot share its memory layout and its scheduling. So a boot is one observation of its variant, whatever
its number of samples, unless boots are shown not to matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special

Boots = Sequence[Sequence[float]]
"""The samples of one variant in one test, one sequence for each boot."""

SIGNIFICANCE = 0.01
"""False positive rate of a difference between boots: rare enough that a mark is worth a look."""

POOLING = 0.5
"""p-value of the analysis of variance above which boots do not matter.

Bancroft and Han (1983, "A note on pooling variances", JASA 78) recommend 0.25. This is stricter, because with two boots
of a variant the analysis has little power. docs/explanation/statistics.md has the resulting coverage.
"""


class Level(StrEnum):
    """The unit of observation of a variant."""

    SAMPLES = "samples"
    BOOTS = "boots"
    SEEDS = "seeds"
    FUNCTIONS = "functions"


@dataclass(frozen=True, slots=True)
class Replicates:
    """The independent observations of two variants: all samples, or the mean of each boot."""

    level: Level
    a: list[float]
    b: list[float]


@dataclass(frozen=True, slots=True)
class Anova:
    """One-way analysis of variance: mean squares between boots of a variant and within boots, degrees of freedom."""

    between: float
    within: float
    between_freedom: int
    within_freedom: int

    @property
    def p(self) -> float:
        """The probability of such a difference of boots, or a larger one, if boots do not matter; 1 if it is
        unknown.
        """
        if self.between_freedom < 1 or self.within_freedom < 1 or self.between == 0:
            return 1.0
        if self.within == 0:
            return 0.0
        return float(special.fdtrc(self.between_freedom, self.within_freedom, self.between / self.within))


def anova(*variants: Boots) -> Anova:
    """Analyse the variance of boots nested in variants, whose means may differ.

    Fisher 1925, "Statistical Methods for Research Workers"; nested as in Searle, Casella and McCulloch 1992, "Variance
    Components", chapter 3. Assumes independent, about normal samples in any one unit; boots may have unequal numbers.
    """
    between = within = 0.0
    boots = samples = used = 0
    for variant in variants:
        groups = [np.asarray(group, dtype=np.float64) for group in variant if len(group)]
        if not groups:
            continue
        mean = np.concatenate(groups).mean()
        between += sum(len(group) * (group.mean() - mean) ** 2 for group in groups)
        within += sum(((group - group.mean()) ** 2).sum() for group in groups)
        boots, samples, used = boots + len(groups), samples + sum(map(len, groups)), used + 1
    freedom = boots - used, samples - boots
    return Anova(float(between / max(freedom[0], 1)), float(within / max(freedom[1], 1)), *freedom)


def boots_differ(boots: Boots) -> bool:
    """Return whether the means of a variant's boots differ by more than the scatter of the samples within them
    explains.

    False with fewer than two boots or no sample to spare.
    """
    return anova(boots).p < SIGNIFICANCE


def replicates(a: Boots, b: Boots) -> Replicates:
    """Return the independent observations: the means of boots, or all samples if boots are alike.

    Boots are alike when the analysis of variance of both variants together gives a p-value above POOLING. Then the
    comparison is Student's t over all samples, as in ministat.
    """
    if anova(a, b).p > POOLING:
        return Replicates(Level.SAMPLES, *([value for boot in boots for value in boot] for boots in (a, b)))
    return Replicates(Level.BOOTS, *([float(np.mean(boot)) for boot in boots if len(boot)] for boots in (a, b)))
