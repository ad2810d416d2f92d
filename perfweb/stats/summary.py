# SPDX-License-Identifier: BSD-2-Clause
"""The six numbers that describe one set of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Summary:
    """Describes `n` samples; every field but `n` has the unit of the samples.

    `deviation` is the sample standard deviation (divisor n - 1) and NaN for a single sample.
    """

    n: int
    minimum: float
    maximum: float
    median: float
    mean: float
    deviation: float

    @property
    def relative_deviation(self) -> float | None:
        """Deviation in percent of the mean; None if the mean is zero or the deviation is unknown."""
        if self.mean == 0 or math.isnan(self.deviation):
            return None
        return abs(self.deviation / self.mean) * 100


def summarize(samples: Sequence[float] | Numbers) -> Summary:
    """Summarize one or more finite samples.

    The deviation is computed in two passes, which keeps its digits when the mean is large against the spread
    (Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance"). The median of an even number of samples
    is the mean of the middle two.

    Raises ValueError when there is no sample or one is not a finite number.
    """
    values = checked(samples)
    return Summary(
        n=len(values),
        minimum=float(values.min()),
        maximum=float(values.max()),
        median=float(np.median(values)),
        mean=float(values.mean()),
        deviation=float(values.std(ddof=1)) if len(values) > 1 else math.nan,
    )


def checked(samples: Sequence[float] | Numbers) -> Numbers:
    """Return the samples as a one-dimensional array of doubles, or raise ValueError with the problem."""
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError("no samples: a summary needs a list of at least one number")
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"sample {index + 1} is {values[index]}: leave out what is not a finite number")
    return values
