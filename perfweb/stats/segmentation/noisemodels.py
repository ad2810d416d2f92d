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
from scipy import special

from perfweb.stats.segmentation.partitioning import Indices, Numbers, all_edges, best_edges

SHORTEST = 3
"""Min points of a level: two that stand out are outliers."""

SIGNIFICANCE = 0.005
"""Max p-value of a step in each plausible model."""

MARGINS = (7.0, 3.0)
"""Max difference of the scores of a plausible model and of the best one, in series of GROWN points and in short ones.

In short series most models would be plausible with the first.
"""

GROWN = 60
"""Min points of a series that determines the model of its noise."""

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


def _youth(count: int) -> float:
    """Return 0 for a series of GROWN points or more, and 1 for one of half of them or fewer."""
    return min(max(0.0, GROWN / count - 1), 1.0)


def step_penalties(count: int, places: Sequence[int]) -> Numbers:
    """Return the penalties of steps in a series of `count` points.

    They are larger next to an end, where a step has few points, and in series below GROWN points, which do not
    determine the model of noise.
    """
    at = np.asarray(places, dtype=np.float64)
    penalties: Numbers = 3 * _youth(count) + 2 + 2 * math.log(count) + 3 / np.maximum(np.minimum(at, count - at) - 2, 1)
    return penalties


def select(values: Numbers, places: Sequence[int]) -> Fit:
    """Return the best fit of a series with some of the steps at `places`, and with those of its steps that are
    significant in every plausible model of the noise.
    """
    columns = _columns(values, places)
    whitened, costs = _whitened(columns)
    grams = whitened.transpose(0, 2, 1) @ whitened
    shapes = [shape for shape in _SHAPES if len(values) >= shape.fewest]
    regressions = np.concatenate([_with_shape(grams, shape) for shape in shapes])
    all_costs = np.concatenate([costs + shape.penalty for shape in shapes])
    score, kept = _eliminated(regressions, all_costs, step_penalties(len(values), places), len(values))
    return Fit(score, [places[step] for step in _proven(regressions, all_costs, columns, shapes, kept)])


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
    from scipy import signal  # slow to import, and only processes that judge series need it

    size = 4 * len(series)
    power = np.abs(np.fft.rfft(signal.detrend(series), size)) ** 2
    frequency = (4 + int(power[4 : max(size // 8, 5)].argmax())) / size
    phase = 2 * np.pi * frequency * np.arange(len(series))
    return np.stack([np.cos(phase), np.sin(phase)])


def _whitened(columns: Numbers) -> tuple[Numbers, Numbers]:
    """Return the columns as each model of noise makes them white, and the penalties of these models.

    The noise is white, has memory (ARMA: Box and Jenkins 1970, "Time Series Analysis"), or has scatter that varies
    (weighted least squares).
    """
    from scipy import signal

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


def _eliminated(grams: Numbers, costs: Numbers, penalties: Numbers, count: int) -> tuple[float, list[int]]:
    """Remove one step after another from each regression, the weakest first. Return the best score, with the indices of
    its steps.

    `grams` are the inner products of the columns of each regression.
    """
    inverse = np.asarray(np.linalg.inv(grams[:, 1:, 1:] + 1e-9 * np.eye(grams.shape[1] - 1)), dtype=np.float64)
    effect: Numbers = (inverse @ grams[:, 1:, :1])[..., 0]
    rest: Numbers = np.maximum(grams[:, 0, 0] - (effect * grams[:, 1:, 0]).sum(axis=1), 0)
    kept, every = np.ones((len(grams), len(penalties)), dtype=bool), np.arange(len(grams))
    found: list[tuple[float, list[int]]] = []
    for steps in range(len(penalties), -1, -1):
        scores = count * np.log(rest / count + 1e-9) + costs + kept @ penalties
        best = int(scores.argmin())
        found.append((float(scores[best]), np.flatnonzero(kept[best]).tolist()))
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


def _proven(
    grams: Numbers, costs: Numbers, columns: Numbers, shapes: Sequence[Shape], kept: Sequence[int]
) -> list[int]:
    """Return those of the steps `kept` that are significant in each plausible regression; the one with the max p-value
    is removed first.

    A p-value is the max over a confidence set of the models, because they are no subject of the test (Berger and Boos
    1994, "P values maximized over a confidence set for the nuisance parameter", JASA 89).
    """
    left, count = list(kept), len(columns)
    margin = MARGINS[0] + (MARGINS[1] - MARGINS[0]) * _youth(count)
    while left:
        scores, found = _tested(grams, costs, count, shapes, left)
        white = int(scores.reshape(len(shapes), -1)[:, 0].argmin())
        worst = np.maximum(found[scores <= scores.min() + margin].max(axis=0), _robust(columns, shapes[white], left))
        if worst.max() <= SIGNIFICANCE:
            break
        del left[int(worst.argmax())]
    return left


def _tested(
    grams: Numbers, costs: Numbers, count: int, shapes: Sequence[Shape], steps: Sequence[int]
) -> tuple[Numbers, Numbers]:
    """Return the score of each regression with these steps, and the p-values of the steps in it, by Student's t."""
    chosen = [*range(_STEPS), *(_STEPS + step for step in steps)]
    some = grams[:, chosen][:, :, chosen]
    inverse = np.linalg.inv(some[:, 1:, 1:] + 1e-9 * np.eye(len(chosen) - 1))
    effect: Numbers = (inverse @ some[:, 1:, :1])[..., 0]
    rest = np.maximum(some[:, 0, 0] - (effect * some[:, 1:, 0]).sum(axis=1), 1e-12)
    smooth = np.repeat([len(shape.columns) for shape in shapes], len(grams) // len(shapes))
    free = np.maximum(count - smooth - len(steps), 1)
    errors = np.sqrt(np.einsum("mii->mi", inverse) * (rest / free)[:, None])
    student = (np.abs(effect) / np.maximum(errors, 1e-150))[:, _STEPS - 1 :]
    scores: Numbers = count * np.log(rest / count + 1e-9) + costs
    return scores, 2 * special.stdtr(free[:, None], -student)


def _robust(columns: Numbers, shape: Shape, steps: Sequence[int]) -> Numbers:
    """Return the p-values of steps that allow a variance for each point.

    MacKinnon and White 1985, "Some heteroskedasticity-consistent covariance matrix estimators", Journal of Econometrics
    29 (HC3); degrees of freedom by Satterthwaite 1946, Biometrics Bulletin 2.
    """
    design = columns[:, [*shape.columns, *(_STEPS + step for step in steps)]]
    influence = design @ np.linalg.pinv(design.T @ design)
    effect = columns[:, 0] @ influence
    rest = columns[:, 0] - design @ effect
    leverage = (influence * design).sum(axis=1)
    squares = influence**2
    variance = (squares * (rest / np.maximum(1 - leverage, 0.05))[:, None] ** 2).sum(axis=0)
    free = squares.sum(axis=0) ** 2 / (squares**2).sum(axis=0) - 1
    student = np.abs(effect) / np.sqrt(variance + 1e-300)
    found: Numbers = 2 * special.stdtr(np.maximum(free, 1), -student)[len(shape.columns) :]
    return found
