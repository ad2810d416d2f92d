# SPDX-License-Identifier: BSD-2-Clause
"""Model selection between change points and noise that looks like them: memory, trends, cycles, varying scatter.

A series is explained by steps and one model of its noise. The pair with the min penalised likelihood is selected
(Schwarz 1978, "Estimating the dimension of a model", Annals of Statistics 6). A step that the noise explains better is
no change point. The constants were selected by simulation; `./dev bench tracking` measures with other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import signal, special

from perfweb.stats.segmentation.partitioning import Indices, Numbers, all_edges, best_edges

SHORTEST = 3
"""Min points of a level: two that stand out are outliers."""

SIGNIFICANCE = 0.002
"""Max p-value of a step in the selected model."""

_MEMORY = (
    (0.3, 0.0), (0.5, 0.0), (0.7, 0.0), (0.85, 0.0), (0.9, 0.6), (0.97, 0.85),
    (1.0, 0.95), (1.0, 0.9), (1.0, 0.8), (1.0, 0.6), (1.0, 0.0),
)  # fmt: skip
"""Coefficients of ARMA(1,1) noise; a random walk with white noise is one whose first is 1."""


@dataclass(frozen=True)
class Shape:
    """A smooth part of the noise: columns of `_columns`, for series of `fewest` points or more."""

    columns: tuple[int, ...]
    penalty: float = 0.0
    fewest: int = 0


_LEVEL, _LINE, _CUBIC = Shape((1,)), Shape((1, 2), 4.0), Shape((1, 2, 3, 4), 20.0, 20)
_SHAPES = (_LEVEL, _LINE, _CUBIC, Shape((1, 5, 6), 15.0, 20))
_STEPS = 7
"""The first column of a step."""

_MEMORY_PENALTY, _SCATTER_PENALTY, _PART_PENALTY = 3.0, 5.0, 6.0
_SHORTEST_SCATTER = 12
_SHORTEST_PART = 4


@dataclass(frozen=True)
class Fit:
    """Change points with a model of noise: n log(variance) with all penalties, and the places."""

    score: float
    places: list[int]


def step_penalties(count: int, places: Sequence[int]) -> Numbers:
    """Return the penalties of steps in a series of `count` points.

    They are larger next to an end, where a step has few points, and in series below sixty points, which do not
    determine the model of noise.
    """
    at = np.asarray(places, dtype=np.float64)
    young = 3 * min(max(0.0, 60 / count - 1), 1.0)
    penalties: Numbers = young + 2 + 2 * math.log(count) + 3 / np.maximum(np.minimum(at, count - at) - 2, 1)
    return penalties


def select(values: Numbers, places: Sequence[int]) -> Fit:
    """Return the best fit of a series with some of the steps at `places`, and with those of its steps that are
    significant.
    """
    whitened, costs = _whitened(_columns(values, places))
    grams = whitened.transpose(0, 2, 1) @ whitened
    shapes = [shape for shape in _SHAPES if len(values) >= shape.fewest]
    regressions = np.concatenate([_with_shape(grams, shape) for shape in shapes])
    all_costs = np.concatenate([costs + shape.penalty for shape in shapes])
    score, best, kept = _eliminated(regressions, all_costs, step_penalties(len(values), places), len(values))
    shape, model = shapes[best // len(costs)], best % len(costs)
    columns = whitened[model][:, [0, *shape.columns, *(_STEPS + step for step in kept)]]
    return Fit(score, [places[kept[step]] for step in _significant(columns, len(shape.columns))])


def _with_shape(grams: Numbers, shape: Shape) -> Numbers:
    """Return inner products in which the smooth columns that a shape does not have explain nothing."""
    unused = [column for column in range(1, _STEPS) if column not in shape.columns]
    found = grams.copy()
    found[:, unused] = found[:, :, unused] = 0
    found[:, unused, unused] = 1
    return found


def _columns(values: Numbers, places: Sequence[int]) -> Numbers:
    """Return the standardized series, the powers 0 to 3 of time, a cycle, and a step at each place, as columns."""
    count = len(values)
    series = (values - values.mean()) / max(float(values.std()), 1e-300)
    time = np.linspace(-1, 1, count)
    steps = (np.arange(count)[:, None] >= np.asarray(places)).astype(np.float64)
    return np.column_stack([series, np.ones(count), time, time**2, time**3, *_cycle(series), steps])


def _cycle(series: Numbers) -> Numbers:
    """Return cosine and sine with the strongest period of at least eight points that the series has once or more."""
    size = 4 * len(series)
    power = np.abs(np.fft.rfft(signal.detrend(series), size)) ** 2
    frequency = (4 + int(power[4 : max(size // 8, 5)].argmax())) / size
    phase = 2 * np.pi * frequency * np.arange(len(series))
    return np.stack([np.cos(phase), np.sin(phase)])


def _whitened(columns: Numbers) -> tuple[Numbers, Numbers]:
    """Return the columns as each model of noise makes them white, and the penalties of these models.

    Box and Jenkins 1970, "Time Series Analysis", for ARMA noise; weighted least squares for scatter that varies.
    """
    found, costs = [columns], [0.0]
    for memory, average in _MEMORY:
        found.append(signal.lfilter([1, -memory], [1, -average], columns, axis=0))
        costs.append(_MEMORY_PENALTY)
    if len(columns) >= _SHORTEST_SCATTER:
        design = columns[:, [1, 2, *range(_STEPS, columns.shape[1])]]
        variance, cost = _variance(columns[:, 0] - design @ np.linalg.lstsq(design, columns[:, 0], rcond=None)[0])
        found.append(columns / np.sqrt(variance)[:, None])
        costs.append(_SCATTER_PENALTY + cost + float(np.log(variance).sum()))
    return np.stack(found), np.array(costs)


def _variance(rest: Numbers) -> tuple[Numbers, float]:
    """Return the variance at each point, constant in parts, and the penalty of the parts.

    Optimal partitioning by the normal likelihood (Killick, Fearnhead and Eckley 2012, JASA 107).
    """
    count = len(rest)
    sums = np.concatenate([[0.0], np.cumsum(rest**2)])
    floor, penalty = 0.05 * sums[-1] / count + 1e-12, _PART_PENALTY + math.log(count)

    def variance(starts: Indices, end: int) -> Numbers:
        found: Numbers = np.maximum((sums[end] - sums[starts]) / (end - starts), floor)
        return found

    def cost(starts: Indices, end: int) -> Numbers:
        long = end - starts
        return np.where(long >= _SHORTEST_PART, long * np.log(variance(starts, end)), np.inf)

    edges = np.array(best_edges(all_edges(count), cost, penalty))
    parts = [float(variance(edges[part : part + 1], int(edges[part + 1]))[0]) for part in range(len(edges) - 1)]
    return np.repeat(parts, np.diff(edges)), penalty * (len(parts) - 1)


def _eliminated(grams: Numbers, costs: Numbers, penalties: Numbers, count: int) -> tuple[float, int, list[int]]:
    """Remove one step after another from each regression, the weakest first. Return the best score, with the index of
    its regression and the indices of its steps.

    `grams` are the inner products of the columns of each regression.
    """
    inverse = np.asarray(np.linalg.inv(grams[:, 1:, 1:] + 1e-9 * np.eye(grams.shape[1] - 1)), dtype=np.float64)
    effect: Numbers = (inverse @ grams[:, 1:, :1])[..., 0]
    rest: Numbers = np.maximum(grams[:, 0, 0] - (effect * grams[:, 1:, 0]).sum(axis=1), 0)
    kept, every = np.ones((len(grams), len(penalties)), dtype=bool), np.arange(len(grams))
    found: list[tuple[float, int, list[int]]] = []
    for steps in range(len(penalties), -1, -1):
        scores = count * np.log(rest / count + 1e-9) + costs + kept @ penalties
        best = int(scores.argmin())
        found.append((float(scores[best]), best, np.flatnonzero(kept[best]).tolist()))
        if not steps:
            break
        explained = (effect**2 / np.maximum(np.einsum("mii->mi", inverse), 1e-300))[:, _STEPS - 1 :]
        variance = np.maximum(rest, 1e-12)[:, None] / (count - steps)
        weakest = np.where(kept, explained / variance - penalties, np.inf).argmin(axis=1)
        kept[every, weakest] = False
        inverse, effect, rest = _without(weakest + _STEPS - 1, inverse, effect, rest)
    return min(found)


def _without(column: Indices, inverse: Numbers, effect: Numbers, rest: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return the inverses, coefficients and sums of squared residuals of regressions after each has lost a column.

    This is the sweep operator (Goodnight 1979, "A tutorial on the SWEEP operator", American Statistician 33).
    """
    every = np.arange(len(inverse))
    pivot, lost = np.maximum(inverse[every, column, column], 1e-300), effect[every, column]
    share = inverse[every, :, column] / pivot[:, None]
    without = inverse - share[:, :, None] * inverse[every, column][:, None, :]
    return without, effect - share * lost[:, None], rest + lost**2 / pivot


def _significant(columns: Numbers, smooth: int) -> list[int]:
    """Return the indices of steps whose effect is significant; the one with the max p-value is removed first.

    `columns` are the series, the smooth ones, and the steps.

    The standard error is the larger of the usual one and one that allows a variance for each point (MacKinnon and
    White 1985, "Some heteroskedasticity-consistent covariance matrix estimators", Journal of Econometrics 29, HC3).
    """
    kept, series = list(range(columns.shape[1] - 1 - smooth)), columns[:, 0]
    while kept:
        design = columns[:, [*range(1, smooth + 1), *(smooth + 1 + step for step in kept)]]
        free = len(columns) - design.shape[1]
        inverse = np.linalg.pinv(design.T @ design)
        influence = design @ inverse
        effect = series @ influence
        rest = series - design @ effect
        leverage = (influence * design).sum(axis=1)
        robust = ((influence * (rest / np.maximum(1 - leverage, 0.05))[:, None]) ** 2).sum(axis=0)
        usual = np.diag(inverse) * float(rest @ rest) / free
        student = np.abs(effect[smooth:]) / np.sqrt(np.maximum(usual, robust) + 1e-300)[smooth:]
        worst = int(student.argmin())
        if 2 * special.stdtr(free, -student[worst]) <= SIGNIFICANCE:
            break
        del kept[worst]
    return kept
