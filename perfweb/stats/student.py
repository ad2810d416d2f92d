# SPDX-License-Identifier: BSD-2-Clause
"""Student's t: the critical values that ministat uses, and the difference of two means.

ministat reads its critical values from a table with three decimals. A verdict here has to equal ministat's on the same
samples, so the table's rounding is part of the definition, and so are its errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from perfweb.stats.summary import Summary

# Two-sided coverage, in percent, of each confidence level that ministat accepts. Its last column is labelled 99.5 but
# has the values for 99.8; the limit for many degrees of freedom shows it: 3.090 where 99.5 has 2.807.
_COVERAGE = {80.0: 80.0, 90.0: 90.0, 95.0: 95.0, 98.0: 98.0, 99.0: 99.0, 99.5: 99.8}

CONFIDENCE_LEVELS: tuple[float, ...] = tuple(_COVERAGE)
DEFAULT_CONFIDENCE = 95.0

# Cells of the last column in which ministat's table is off in the third decimal, by degrees of freedom (found by
# comparing the program's output with the t distribution for all of them).
_MISPRINTS = {7: 4.782, 8: 4.499, 9: 4.296, 10: 4.143, 11: 4.024, 12: 3.929}

# The table has a row for each number of degrees of freedom up to this one, then the row of the normal distribution.
_LAST_ROW = 100

MINIMUM_SAMPLES = 3
"""ministat refuses a smaller set, and so does this module: two samples show too little of their spread."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two means with its confidence interval, `absolute` ± `error`, in the unit of the samples.

    `pooled_deviation` estimates the standard deviation that both sets are assumed to share.
    """

    confidence: float
    absolute: float
    error: float
    pooled_deviation: float
    standard_error: float
    degrees_of_freedom: int

    @property
    def proven(self) -> bool:
        """Whether the confidence interval excludes zero."""
        return abs(self.absolute) > self.error


def checked_confidence(confidence: float) -> float:
    """Return a confidence level in percent, or raise ValueError naming the levels that ministat has."""
    if confidence not in _COVERAGE:
        levels = ", ".join(f"{level:g}" for level in CONFIDENCE_LEVELS)
        raise ValueError(f"confidence level {confidence:g} is not supported: choose one of {levels} (percent)")
    return confidence


def critical_value(degrees_of_freedom: int, confidence: float) -> float:
    """Return the two-sided critical value of Student's t as ministat's table has it, to three decimals.

    Source: the inverse of the t distribution (Student 1908, "The probable error of a mean"), rounded like the table.
    Raises ValueError for a confidence level that ministat does not have.
    """
    checked_confidence(confidence)
    if degrees_of_freedom < 1:
        raise ValueError("Student's t needs at least one degree of freedom: take more samples")
    if confidence == 99.5 and degrees_of_freedom in _MISPRINTS:
        return _MISPRINTS[degrees_of_freedom]
    quantile = 0.5 + _COVERAGE[confidence] / 200
    if degrees_of_freedom > _LAST_ROW:
        return round(float(special.ndtri(quantile)), 3)
    return round(float(special.stdtrit(degrees_of_freedom, quantile)), 3)


def difference(
    reference: Summary,
    other: Summary,
    confidence: float = DEFAULT_CONFIDENCE,
    variances: tuple[float, float] | None = None,
) -> Difference:
    """Return the difference `other` - `reference` of two means with its error at `confidence` percent.

    Student's two-sample t with pooled variance (Student 1908; ministat prints the same): assumes independent samples,
    about normally distributed, with the same variance in both sets.

    `variances` replaces the squares of the summaries' deviations: ministat's formula can make one of them negative.

    Raises ValueError with fewer than three samples in a set or an unsupported confidence level.
    """
    for summary in (reference, other):
        if summary.n < MINIMUM_SAMPLES:
            raise ValueError(
                f"{summary.n} samples are too few: a comparison needs at least {MINIMUM_SAMPLES} in each set"
            )
    degrees = reference.n + other.n - 2
    ours, theirs = variances or (reference.deviation**2, other.deviation**2)
    variance = ((reference.n - 1) * ours + (other.n - 1) * theirs) / degrees
    pooled = math.sqrt(variance) if variance >= 0 else math.nan
    standard_error = pooled * math.sqrt(1 / reference.n + 1 / other.n)
    error = critical_value(degrees, confidence) * standard_error
    absolute = other.mean - reference.mean
    return Difference(
        confidence=confidence,
        absolute=absolute,
        error=error,
        pooled_deviation=pooled,
        standard_error=standard_error,
        degrees_of_freedom=degrees,
    )
