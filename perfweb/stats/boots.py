# SPDX-License-Identifier: BSD-2-Clause
"""Whether boots of one variant differ from each other, in which case Student's t over all samples is too sure of
itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

SIGNIFICANCE = 0.01
"""Chance to report a difference of boots where there is none: rare enough that a mark is worth a look."""


def boots_differ(boots: Sequence[Sequence[float]]) -> bool:
    """Tell whether the means of boots differ by more than the scatter of the samples within them explains.

    One-way analysis of variance (Fisher 1925, "Statistical Methods for Research Workers"): samples of each boot, in any
    one unit, are assumed to be independent and about normal. False with fewer than two boots or no sample to spare.
    """
    groups = [np.asarray(samples, dtype=np.float64) for samples in boots if len(samples)]
    between = len(groups) - 1
    within = sum(len(group) for group in groups) - len(groups)
    if between < 1 or within < 1:
        return False
    total_mean = np.concatenate(groups).mean()
    spread_between = sum(len(group) * (group.mean() - total_mean) ** 2 for group in groups) / between
    spread_within = sum(((group - group.mean()) ** 2).sum() for group in groups) / within
    if spread_within == 0:
        return bool(spread_between > 0)
    return bool(special.fdtrc(between, within, spread_between / spread_within) < SIGNIFICANCE)
