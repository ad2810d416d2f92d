# SPDX-License-Identifier: BSD-2-Clause
"""Output in the format of ministat(1), equal to that of Debian's ministat for the same samples, byte for byte.

Network developers have pasted this output into mails for twenty years, and a user who doubts a verdict can run the
program on the downloaded samples and compare. So some properties of that version differ from perfweb.stats.summary on
purpose. Its median of an even number of samples is the upper of the middle two. Its variance is the one-pass formula,
which loses all digits when the spread is below some 1e-8 of the mean. Its plot is as high as the last set needs. It
prints the floating-point result of a division by a zero mean.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from perfweb.stats.student import DEFAULT_CONFIDENCE, MINIMUM_SAMPLES, Difference, checked_confidence, difference
from perfweb.stats.summary import Summary, checked

DEFAULT_WIDTH = 74
MINIMUM_WIDTH = 2
MAXIMUM_SETS = 7
LARGEST = 1e100
"""Max magnitude of a sample for which the real program finds the ends of its plot."""

# One symbol for each set, by its number; where sets overlap, the symbol of their numbers' bitwise or.
_SYMBOLS = " x+*%#@O"
_HEADER = "    N           Min           Max        Median           Avg        Stddev"


def ministat(
    sets: Mapping[str, Sequence[float]],
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    width: int = DEFAULT_WIDTH,
    plot: bool = True,
    separate_bars: bool = False,
    summary_only: bool = False,
) -> str:
    """Return the output of `ministat -c confidence -w width` for the named sets, compared with the first of them.

    `plot=False` is its option -A, `separate_bars` is -s and `summary_only` is -n.

    Raises ValueError for fewer than three samples in a set, samples that are not finite or too large, no set or more
    than seven, a width below 2 columns, or a confidence level that ministat does not have.
    """
    _check(sets, confidence, width)
    values = [[float(value) for value in samples] for samples in sets.values()]
    summaries = [_summary(samples) for samples in values]
    lines = [f"{symbol} {name}" for symbol, name in zip(_SYMBOLS[1:], sets, strict=False)]
    if plot and not summary_only:
        lines += _plot(values, summaries, width, separate_bars)
    variances = [_variance(samples) for samples in values]
    lines += table(summaries, None if summary_only else confidence, variances)
    return "\n".join(lines) + "\n"


def table(
    summaries: Sequence[Summary],
    confidence: float | None = DEFAULT_CONFIDENCE,
    variances: Sequence[float] | None = None,
) -> list[str]:
    """Return the lines of ministat's table: a row for each set, and its comparison with the first unless `confidence`
    is None. `variances` are those of difference().
    """
    lines = [_HEADER]
    for number, summary in enumerate(summaries, start=1):
        lines.append(_row(_SYMBOLS[number], summary))
        if number > 1 and confidence is not None:
            both = (variances[0], variances[number - 1]) if variances else None
            lines += difference_lines(difference(summaries[0], summary, confidence, both), summaries[0].mean)
    return lines


def difference_lines(found: Difference, reference_mean: float) -> list[str]:
    """Return the lines in which ministat states a difference, or that none is proven."""
    if not found.proven:
        return [f"No difference proven at {found.confidence:.1f}% confidence"]
    percent = _c_number(_c_divide(found.absolute * 100, reference_mean), "g")
    percent_error = _c_number(_c_divide(found.error * 100, reference_mean), "g")
    return [
        f"Difference at {found.confidence:.1f}% confidence",
        f"\t{found.absolute:g} +/- {found.error:g}",
        f"\t{percent}% +/- {percent_error}%",
        f"\t(Student's t, pooled s = {found.pooled_deviation:g})",
    ]


def _check(sets: Mapping[str, Sequence[float]], confidence: float, width: int) -> None:
    checked_confidence(confidence)
    if not 1 <= len(sets) <= MAXIMUM_SETS:
        raise ValueError(f"{len(sets)} sets of samples: ministat takes from 1 to {MAXIMUM_SETS}")
    if width < MINIMUM_WIDTH:
        raise ValueError(f"a plot of {width} columns is too narrow: take at least {MINIMUM_WIDTH}")
    for name, samples in sets.items():
        if len(samples) < MINIMUM_SAMPLES:
            raise ValueError(f"{name} has {len(samples)} samples: measure again until it has {MINIMUM_SAMPLES} or more")
        if max(abs(checked(samples))) > LARGEST:
            raise ValueError(f"{name} has a sample beyond {LARGEST:g}: use a larger unit")


def _summary(samples: Sequence[float]) -> Summary:
    """Summarize samples the way Debian's ministat does; the deviation is NaN where its formula fails."""
    n = len(samples)
    ordered = sorted(samples)
    total = 0.0
    for value in samples:
        total += value
    variance = _variance(samples)
    deviation = math.sqrt(variance) if variance >= 0 else math.nan
    return Summary(n, ordered[0], ordered[-1], ordered[n // 2], total / n, deviation)


def _variance(samples: Sequence[float]) -> float:
    """Return the variance in one pass, which rounding may leave below zero or far too large."""
    total = squares = 0.0
    for value in samples:
        total += value
        squares += value * value
    return (squares - total * total / len(samples)) / (len(samples) - 1.0)


def _row(symbol: str, summary: Summary) -> str:
    numbers = (summary.minimum, summary.maximum, summary.median, summary.mean, summary.deviation)
    return f"{symbol} {summary.n:3d} {' '.join(_c_number(number, '13.8g') for number in numbers)}"


def _plot(sets: list[list[float]], summaries: list[Summary], width: int, separate_bars: bool) -> list[str]:
    axis = _Axis(summaries, width)
    if axis.span == 0:
        return ["[no plot, span is zero width]"]
    bars = [[" "] * width for _ in sets] if separate_bars else [[" "] * width] * len(sets)
    for bar, summary in zip(bars, summaries, strict=True):
        _draw_bar(bar, axis, summary)
    edge = "+" + "-" * width + "+"
    body = _points(sets, axis) + ["".join(bar) for bar in (bars if separate_bars else bars[:1])]
    return [edge, *(f"|{line}|" for line in body), edge]


class _Axis:
    """Maps values to columns so that the samples and the bars of mean ± deviation all fit into `width` columns."""

    def __init__(self, summaries: list[Summary], width: int) -> None:
        ends = [
            end
            for summary in summaries
            for end in (
                summary.minimum,
                summary.maximum,
                summary.mean - summary.deviation,
                summary.mean + summary.deviation,
            )
            if not math.isnan(end)
        ]
        self.width = width
        self.span = max(ends) - min(ends)
        self._step = self.span / (width - 1.0)
        self._origin = min(ends) - 0.5 * self._step

    def column(self, value: float) -> int:
        # Rounding may lead beyond the edge when the span is a few units in the last place.
        return min(max(int((value - self._origin) / self._step), 0), self.width - 1)


def _points(sets: list[list[float]], axis: _Axis) -> list[str]:
    """Return the lines of samples, top line first: equal columns of a set pile up, different sets overlap.

    The plot is as high as the highest pile of the last set: lines of earlier sets above that are lost, as in the
    original.
    """
    lines: list[list[int]] = []
    for number, samples in enumerate(sets, start=1):
        piles = Counter(axis.column(sample) for sample in samples)
        height = max(piles.values())
        lines = lines[:height] + [[0] * axis.width for _ in range(height - len(lines))]
        for column, pile in piles.items():
            for line in lines[:pile]:
                line[column] |= number
    return ["".join(_SYMBOLS[cell] for cell in line) for line in reversed(lines)]


def _draw_bar(bar: list[str], axis: _Axis, summary: Summary) -> None:
    """Draw mean ± deviation, the median and the mean into a line; later ones cover earlier ones."""
    if not math.isnan(summary.deviation):
        left = axis.column(summary.mean - summary.deviation)
        right = axis.column(summary.mean + summary.deviation)
        bar[left : right + 1] = ["_" if cell == " " else cell for cell in bar[left : right + 1]]
        bar[left] = bar[right] = "|"
    bar[axis.column(summary.median)] = "M"
    bar[axis.column(summary.mean)] = "A"


def _c_divide(dividend: float, divisor: float) -> float:
    """Divide as C does: by zero gives an infinity, zero by zero gives NaN."""
    if divisor == 0:
        return math.nan if dividend == 0 else math.copysign(math.inf, dividend)
    return dividend / divisor


def _c_number(number: float, form: str) -> str:
    """Format as C's printf does: on usual machines the NaN of an invalid operation has its sign set."""
    return f"{-math.inf:{form}}".replace("inf", "nan") if math.isnan(number) else f"{number:{form}}"
