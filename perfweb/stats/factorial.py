# SPDX-License-Identifier: BSD-2-Clause
"""Main effects and interactions of knobs on a measured number, from variants that differ in several of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Column = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Factor:
    """A knob set to `level` instead of `base`; two of them are an interaction."""

    knob: str
    base: str
    level: str


@dataclass(frozen=True)
class KnobEffect:
    """The main effect of a factor, or its interaction with another, in percent.

    `low` and `high` bound the confidence interval. All three are None if the variants cannot separate the effect from
    others, the bounds also when there is no observation to spare.
    """

    factors: tuple[Factor, ...]
    percent: float | None
    low: float | None
    high: float | None

    @property
    def proven(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def knob_effects(
    settings: Sequence[Mapping[str, str]], values: Sequence[float], confidence: float = 95.0
) -> list[KnobEffect]:
    """Estimate the effects of knobs from one positive value (the mean of a boot) for each setting of all knobs.

    A linear model of the logarithms with sum-to-zero coding (Montgomery, "Design and Analysis of Experiments",
    chapter 5; Box, Hunter and Hunter, "Statistics for Experimenters", chapter 5): a main effect is the relative change
    from the base level, that of the first setting, averaged over the levels of the other knobs. An interaction of two
    knobs of two levels is the relative change of the first knob's effect when the second one is turned. Values are
    assumed to scatter independently with one relative deviation. Intervals use Student's t.

    Raises ValueError for lists of different length, no value, or one that is not positive and finite.
    """
    if len(settings) != len(values) or not len(values):
        raise ValueError(f"{len(settings)} settings and {len(values)} values: give one value for each setting")
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise ValueError("effects are relative: leave out values that are not positive")
    terms = _terms(settings)
    kept, model = _independent(terms, len(values))
    logs = np.log(np.asarray(values, dtype=float))
    coefficients = np.asarray(np.linalg.lstsq(model, logs, rcond=None)[0], dtype=np.float64)
    freedom = len(values) - model.shape[1]
    residuals = logs - model @ coefficients
    variance = float(residuals @ residuals) / freedom if freedom > 0 else math.nan
    covariance = np.asarray(np.linalg.inv(model.T @ model) * variance, dtype=np.float64)
    t = float(special.stdtrit(freedom, 0.5 + confidence / 200)) if freedom > 0 else math.nan
    return [_effect(factors, kept, coefficients, covariance, t) for factors, _ in terms]


def _terms(settings: Sequence[Mapping[str, str]]) -> list[tuple[tuple[Factor, ...], Column]]:
    """The columns of all main effects, then those of the interactions of knobs with two levels."""
    mains: list[tuple[tuple[Factor, ...], Column]] = []
    pairs: list[tuple[tuple[Factor, ...], Column]] = []
    for knob in sorted({name for setting in settings for name in setting}):
        levels = [setting.get(knob, "") for setting in settings]
        base, *others = dict.fromkeys(levels)
        found = [
            ((Factor(knob, base, level),), np.array([(value == level) - (value == base) for value in levels], float))
            for level in others
        ]
        mains += found
        pairs += found if len(others) == 1 else []
    return mains + [
        ((*first[0], *second[0]), first[1] * second[1]) for first, second in itertools.combinations(pairs, 2)
    ]


def _independent(
    terms: Sequence[tuple[tuple[Factor, ...], Column]], count: int
) -> tuple[dict[tuple[Factor, ...], int], Matrix]:
    """Return the model matrix without terms that earlier ones determine, and the column of each term."""
    kept: dict[tuple[Factor, ...], int] = {}
    model = np.ones((count, 1))
    for factors, column in terms:
        wider = np.column_stack([model, column])
        if np.linalg.matrix_rank(wider) == wider.shape[1]:
            kept[factors], model = model.shape[1], wider
    return kept, model


def _effect(
    factors: tuple[Factor, ...],
    kept: Mapping[tuple[Factor, ...], int],
    coefficients: Column,
    covariance: Matrix,
    t: float,
) -> KnobEffect:
    """Return the contrast of a term: level against base, which is minus the sum of all levels of the knob."""
    if factors not in kept:
        return KnobEffect(factors, None, None, None)
    contrast = np.zeros(len(coefficients))
    if len(factors) == 1:
        for (other, *more), place in kept.items():
            contrast[place] = 1.0 if other.knob == factors[0].knob and not more else 0.0
        contrast[kept[factors]] += 1.0
    else:
        contrast[kept[factors]] = 4.0
    middle = float(contrast @ coefficients)
    error = t * math.sqrt(max(float(contrast @ covariance @ contrast), 0.0)) if not math.isnan(t) else math.nan
    low, high = (None, None) if math.isnan(error) else (_percent(middle - error), _percent(middle + error))
    return KnobEffect(factors, _percent(middle), low, high)


def _percent(logarithm: float) -> float:
    """Return a factor as a change in percent; limited, so that it cannot overflow."""
    return 100 * math.expm1(min(logarithm, 700.0))
