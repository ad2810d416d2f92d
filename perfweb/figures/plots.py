# SPDX-License-Identifier: BSD-2-Clause
"""Graphs of samples and of differences as Plotly figures, without colours: those are in the style sheet.

A figure is {"data": [...], "layout": {...}} as plotly.js takes it. `meta.role` of a trace selects its colour in the
style sheet: "series-0" to "series-5", or the name of a verdict. `meta.toggle` is the number of its check box.
perfweb.figures.svg draws the same figures without JavaScript.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from django.urls import reverse

from perfweb.stats.comparison import Lack, Verdict
from perfweb.stats.ratio import Change
from perfweb.verdicts.comparisons import TestComparison
from perfweb.verdicts.numbers import Scale
from perfweb.verdicts.results import MetricResults, Point, Series, TestResults
from perfweb.verdicts.wording import cell_words, css_name, difference_words, lack_in_brief

Figure = dict[str, Any]
Values = TypeVar("Values")

SERIES_COLOURS = 6
MOST_POINTS = 5000
"""Max points of a figure: more would be slow in a browser, and a plot of some 700 pixels cannot show them."""

SYMBOLS = (
    "circle", "diamond", "square", "triangle-up", "cross", "star",
    "triangle-down", "hexagon", "hourglass", "bowtie", "triangle-left", "triangle-right",
)  # fmt: skip
_VERDICT_SYMBOLS = {
    Verdict.FASTER: "triangle-up",
    Verdict.SLOWER: "triangle-down",
    Verdict.EQUIVALENT: "circle",
    Verdict.IDENTICAL: "square",
    Verdict.NOT_ENOUGH_DATA: "circle-open",
    Verdict.NOT_JUDGED: "diamond-open",
}
"""Markers that look like the marks of verdicts in text; a failed test has no interval."""

_ROW_PIXELS = 36
_MOST_TICKS, _MOST_CHARACTERS = 16, 75
"""Max number of labels of an axis, and of all their characters, in one line."""
_MOST_LABEL_ROWS = 4
_LABEL_PIXELS = 13
_LABEL_SHARE = 0.022
"""Width of a label's character on a narrow screen, as a share of the axis."""


def series_style(number: int) -> tuple[dict[str, Any], str]:
    """Return the meta data and the marker of the series with a number; twelve can be distinguished."""
    meta = {"role": f"series-{number % SERIES_COLOURS}", "toggle": number}
    return meta, SYMBOLS[number % len(SYMBOLS)]


def series_look(number: int, name: str, size: int = 6) -> Figure:
    """Return what all traces of the series with a number have in common."""
    meta, symbol = series_style(number)
    return {"name": name, "marker": {"symbol": symbol, "size": size}, "meta": meta}


def drawn(
    lines: Mapping[str, Values], names: Sequence[str] = (), size: int = 6
) -> Iterator[tuple[int, Values, Figure]]:
    """Yield the number, the values and the look of each line that has values.

    `names` are those of all series of the page, or of the lines: if one is not drawn, the others keep their colours and
    markers.
    """
    for number, name in enumerate(names or lines):
        if values := lines.get(name):
            yield number, values, series_look(number, name, size)


def samples_figure(results: MetricResults) -> Figure:
    """Draw every sample of a metric as a point: boots from left to right in order, and the samples of a boot in order.

    The order shows what a mean hides: warm-up, drift, and differences between boots. Samples that enter no statistics
    are hollow.
    """
    boots = sorted({point.boot for series in results.series for point in series.points})
    slots = {boot: slot for slot, boot in enumerate(boots)}
    traces = [
        _samples_trace(series, hollow, results.scale, slots) for series in results.series for hollow in (False, True)
    ]
    return {
        "data": [trace for trace in traces if trace["y"]],
        "layout": {
            "height": 240,
            "xaxis": slots_axis([str(boot) for boot in boots], "boot, in the order of the run"),
            "yaxis": {"title": {"text": results.scale.unit}},
            "shapes": [upright(slot) for slot in range(1, len(boots))],
        },
    }


def _samples_trace(series: Series, hollow: bool, scale: Scale, slots: Mapping[int, int]) -> Figure:
    points = [point for point in series.points if point.hollow is hollow]
    longest = max(point.number for point in series.points) + 1
    look = series_look(series.variant.position, series.variant.name, size=8)
    if hollow:
        look["marker"]["symbol"] += "-open"
    return {
        **look,
        "type": "scatter",
        "mode": "markers",
        "x": [slots[point.boot] + (point.number + 0.5) / longest for point in points],
        "y": [point.value / scale.factor for point in points],
        "text": [
            f"boot {point.boot}, sample {point.number + 1}: {scale.text(point.value)} {scale.unit}{_note(point)}"
            for point in points
        ],
        "hovertemplate": "%{text}",
    }


def _note(point: Point) -> str:
    if point.void:
        return " (void)"
    return " (not counted)" if point.hollow else ""


def topic_figure(tests: Sequence[TestResults], baseline: int) -> Figure:
    """Draw every counted sample of related tests in one graph, in percent of the mean of variant `baseline` (its key).

    Tests lie side by side, samples of a test in the order of the run.
    """
    variants = sorted({series.variant.position for test in tests for series in test.primary})
    traces = [_topic_trace(tests, position, baseline) for position in variants]
    return {
        "data": [trace for trace in traces if trace["y"]],
        "layout": {
            "height": 280,
            "xaxis": slots_axis(
                [test.name.partition("/")[0] for test in tests], "test, samples in the order of the run"
            ),
            "yaxis": {"title": {"text": "% of the baseline's mean"}},
            "shapes": [upright(slot) for slot in range(1, len(tests))] + [level(100.0)],
        },
    }


def _topic_trace(tests: Sequence[TestResults], position: int, baseline: int) -> Figure:
    x: list[float] = []
    y: list[float] = []
    of: list[tuple[TestResults, float]] = []
    name = ""
    for slot, test in enumerate(tests):
        of_variant = {series.variant.pk: series for series in test.primary}
        reference = of_variant[baseline].mean if baseline in of_variant else None
        for series in test.primary:
            if series.variant.position != position or not reference:
                continue
            name = series.variant.name
            count = len(series.samples)
            x += [slot + 0.06 + 0.88 * (index + 0.5) / count for index in range(count)]
            y += [100 * value / reference for value in series.samples]
            of += [(test, value) for value in series.samples]
    kept = thinned(y, MOST_POINTS // SERIES_COLOURS)
    shown = [of[index] for index in kept]
    return {
        **series_look(position, name, size=7),
        "type": "scatter",
        "mode": "markers",
        "x": [round(x[index], 4) for index in kept],
        "y": [round(y[index], 4) for index in kept],
        "text": [f"{test.name}: {test.scale.text(value)} {test.scale.unit}" for test, value in shown],
        "hovertemplate": "%{text}",
    }


def history_figure(
    lines: Mapping[str, Sequence[Sequence[float]]], runs: Sequence[int], scale: Scale, changes: Mapping[int, str]
) -> Figure:
    """Draw every sample of each line over `runs`, from left to right; a line has its samples run by run.

    Lettered lines precede the runs that `changes` names.
    """
    traces = []
    addresses = _addresses(runs)
    for _, samples, look in drawn(lines, size=7):
        points = [
            (slot + 0.06 + 0.88 * (index + 0.5) / len(values), value, runs[slot])
            for slot, values in enumerate(samples)
            for index, value in enumerate(values)
        ]
        kept = [points[place] for place in thinned([value for _, value, _ in points], MOST_POINTS // len(lines))]
        traces.append(
            {
                **look,
                "type": "scatter",
                "mode": "markers",
                "x": [round(x, 3) for x, *_ in kept],
                "y": [value / scale.factor for _, value, _ in kept],
                "text": [f"run {run}: {scale.text(value)} {scale.unit}" for _, value, run in kept],
                "customdata": [addresses[run] for *_, run in kept],
                "hovertemplate": "%{text}",
            }
        )
    slots = slots_axis([str(run) for run in runs], "run, samples in their order")
    letters = lettered({float(slot): changes[run] for slot, run in enumerate(runs) if run in changes})
    return {
        "data": [trace for trace in traces if trace["y"]],
        "layout": {
            "height": 260,
            "xaxis": slots,
            "yaxis": {"title": {"text": scale.unit}},
            **letters,
            "meta": {"width": 1100},
        },
    }


def _addresses(runs: Iterable[int]) -> dict[int, str]:
    """Links of the points of runs: each address is looked up once, because a lookup takes longer than drawing."""
    return {run: reverse("reports:run", args=[run]) for run in runs}


def runs_figure(
    lines: Mapping[str, Mapping[int, float]], runs: Sequence[int], unit: str, changes: Mapping[int, str]
) -> Figure:
    """Draw a number of each line over `runs`, with lettered lines before the runs in `changes`."""
    traces = []
    addresses = _addresses(runs)
    for number, values, look in drawn(lines):
        known = [(slot + 0.5, run) for slot, run in enumerate(runs) if run in values]
        traces.append(
            {
                **look,
                "type": "scatter",
                "mode": "lines+markers",
                "x": [x for x, _ in known],
                "y": [round(values[run], 4) for _, run in known],
                "text": [f"run {run}: {values[run]:.4g} {unit}" for _, run in known],
                "customdata": [addresses[run] for _, run in known],
                "hovertemplate": "%{text}",
                "line": {"dash": "dash"} if number >= SERIES_COLOURS else {},
            }
        )
    letters = lettered({float(slot): changes[run] for slot, run in enumerate(runs) if run in changes})
    return {
        "data": [trace for trace in traces if trace["y"]],
        "layout": {
            "height": 280,
            "xaxis": slots_axis([str(run) for run in runs], "run"),
            "yaxis": {"title": {"text": unit}},
            **letters,
        },
    }


def slots_axis(labels: Sequence[str], title: str) -> Figure:
    """Return an axis of equally wide slots, each with its label in the middle; of many slots only some are labelled."""
    longest = 1 + max(map(len, labels), default=0)
    every = -(-len(labels) // max(1, min(_MOST_TICKS, _MOST_CHARACTERS // longest))) or 1
    return {
        "title": {"text": title},
        "tickvals": [slot + 0.5 for slot in range(0, len(labels), every)],
        "ticktext": list(labels[::every]),
        "range": [0, len(labels)],
        "showgrid": False,
    }


def lettered(letters: Mapping[float, str], span: float = 0.0) -> Figure:
    """Return what a layout needs for lines across the plot with a letter or number on top, given by their places.

    `span` is the length of the axis: labels that would overlap are stacked.
    """
    ends = [-math.inf] * _MOST_LABEL_ROWS
    notes = []
    for x, text in sorted(letters.items()):
        half = len(text) * _LABEL_SHARE * span / 2
        row = next((row for row, end in enumerate(ends) if x - half >= end), ends.index(min(ends)))
        ends[row] = x + half
        note = {"x": x, "y": 1, "yref": "paper", "yanchor": "bottom", "text": text}
        notes.append({**note, "yshift": _LABEL_PIXELS * row} if row else note)
    return {"shapes": [upright(x) for x in letters], "annotations": notes}


def thinned(values: Sequence[float], most: int) -> list[int]:
    """Return the places of at most `most` of the values, in order, so that a plot looks as with all of them.

    Of each of equally long pieces min and max stay, as in M4 (Jugel and others 2014, "M4: a visualization-oriented time
    series data aggregation", VLDB), so that no extreme value is lost.
    """
    if len(values) <= most:
        return list(range(len(values)))
    edges = np.linspace(0, len(values), most // 2 + 1).astype(int)
    piece = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    rising = np.lexsort((np.asarray(values, dtype=float), piece))
    kept: list[int] = np.union1d(rising[edges[:-1]], rising[edges[1:] - 1]).tolist()
    return kept


def upright(x: float) -> Figure:
    """Return a thin line from the bottom to the top of the plot."""
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": {"width": 1, "dash": "dot"}}


def level(y: float) -> Figure:
    """Return a thin line from the left to the right of the plot."""
    return {"type": "line", "x0": 0, "x1": 1, "xref": "paper", "y0": y, "y1": y, "line": {"width": 1, "dash": "dot"}}


def intervals_figure(comparisons: Sequence[TestComparison]) -> Figure:
    """Draw the confidence interval of each difference in percent, the largest on top, with a line at zero and dotted
    ones at the margin of equivalence. A verdict that was taken back because there are many tests is marked in its row,
    where the interval is the adjusted one.
    """
    found = [(effect.interval, comparison) for comparison in comparisons if (effect := comparison.result.effect)]
    found.sort(key=lambda row: row[0].percent)
    several = len({comparison.b for comparison in comparisons}) > 1
    margins = sorted({comparison.result.margin for comparison in comparisons})
    ends = [end for change, _ in found for end in (change.low, change.high)]
    lines = [sign * margin for margin in margins for sign in (-1, 1)]
    rows = [(change, comparison, _row_name(comparison, several)) for change, comparison in found]
    traces = [
        _intervals_trace(number, verdict, [row for row in rows if row[1].result.verdict is verdict])
        for number, verdict in enumerate(_VERDICT_SYMBOLS)
    ]
    return {
        "data": [trace for trace in traces if trace["y"]],
        "layout": {
            "height": 70 + _ROW_PIXELS * len(rows),
            "meta": {"width": 560},
            "shapes": [upright(x) for x in lines],
            "xaxis": {
                "title": {"text": "difference, %"},
                "zeroline": True,
                "zerolinewidth": 2,
                **beyond([*ends, *lines, 0.0]),
            },
            "yaxis": {
                "type": "category",
                "categoryorder": "array",
                "categoryarray": [name for *_, name in rows],
                "ticklabelposition": "inside top",  # beside the plot they would take most of a telephone's width
                "range": [-0.5, len(rows) - 0.3],
            },
        },
    }


def _row_name(comparison: TestComparison, several: bool) -> str:
    name = f"{comparison.test} {comparison.b}" if several else comparison.test
    return f"{name} ({lack_in_brief(comparison.lack)})" if comparison.lack is Lack.CERTAINTY else name


def _intervals_trace(number: int, verdict: Verdict, rows: Sequence[tuple[Change, TestComparison, str]]) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": str(verdict),
        "x": [change.percent for change, *_ in rows],
        "y": [name for *_, name in rows],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [change.high - change.percent for change, *_ in rows],
            "arrayminus": [change.percent - change.low for change, *_ in rows],
            "thickness": 1.5,
            "width": 5,
        },
        "text": [
            f"{name}: {difference_words(comparison.result)}, {cell_words(comparison)}" for _, comparison, name in rows
        ],
        "hovertemplate": "%{text}",
        "marker": {"symbol": _VERDICT_SYMBOLS[verdict], "size": 10},
        "meta": {"role": css_name(verdict), "toggle": number},
    }


def scaling_figure(lines: Mapping[str, Mapping[int, Sequence[float]]], scale: Scale) -> Figure:
    """Draw values over the number of their CPUs, with a line through the means.

    The axis is logarithmic: twice as many CPUs are always equally far to the right.
    """
    traces = []
    for number, values, style in drawn(lines, size=7):
        cpus = sorted(values)
        look = {**style, "type": "scatter", "hovertemplate": f"%{{text}} CPUs: %{{y}} {scale.unit}"}
        means = [sum(values[count]) / len(values[count]) / scale.factor for count in cpus]
        line = {"dash": "dash"} if number % 2 else {}
        traces.append({**look, "mode": "lines", **_of_cpus(cpus), "y": means, "line": line})
        x = _of_cpus([count for count in cpus for _ in values[count]])
        y = [value / scale.factor for count in cpus for value in values[count]]
        traces.append({**look, "mode": "markers", **x, "y": y})
    counts = sorted({count for values in lines.values() for count in values})
    return {
        "data": traces,
        "layout": {
            "height": 280,
            "xaxis": {
                "title": {"text": "CPUs"},
                "tickvals": _of_cpus(counts)["x"],
                "ticktext": [str(count) for count in counts],
            },
            "yaxis": {"title": {"text": scale.unit}, "rangemode": "tozero"},
        },
    }


def _of_cpus(counts: Sequence[int]) -> Figure:
    return {"x": [round(math.log2(count), 3) for count in counts], "text": [str(count) for count in counts]}


def boxes_figure(sets: Mapping[str, Sequence[float]], scale: Scale) -> Figure:
    """Draw each named set of samples as a box (quartiles, median, extremes) with every sample beside it."""
    traces = []
    for _, samples, look in drawn(sets):
        kept = thinned(samples, MOST_POINTS // len(sets))
        traces.append(
            {
                **look,
                "type": "box",
                "y": [samples[index] / scale.factor for index in kept],
                "boxpoints": "all",
                "jitter": 0.4,
                "pointpos": -1.6,
            }
        )
    return {
        "data": traces,
        "layout": {"height": 260, "xaxis": {"type": "category"}, "yaxis": {"title": {"text": scale.unit}}},
    }


def distributions_figure(sets: Mapping[str, Sequence[float]], scale: Scale) -> Figure:
    """Draw the empirical distribution function of each named set: the share of its samples up to each value."""
    every = [value for samples in sets.values() for value in samples]
    traces = []
    for number, samples, look in drawn(sets):
        ordered = sorted(samples)
        kept = thinned(ordered, MOST_POINTS // (2 * len(sets)))
        share = [(place + 1) / len(ordered) for place in kept]
        # Each step has two corners: the curve rises at a sample, not between two.
        traces.append(
            {
                **look,
                "type": "scatter",
                "mode": "lines",
                "x": [ordered[place] / scale.factor for place in kept for _ in (0, 1)],
                "y": [value for before, here in zip([0.0, *share], share, strict=False) for value in (before, here)],
                "line": {"dash": "dash"} if number % 2 else {},
            }
        )
    return {
        "data": traces,
        "layout": {
            "height": 260,
            "xaxis": {"title": {"text": scale.unit}, **beyond([value / scale.factor for value in every])},
            "yaxis": {"title": {"text": "share of samples"}, "range": [0, 1.02]},
        },
    }


def beyond(values: Sequence[float]) -> Figure:
    """Return a range with some space beside the values, so that the frame hides none."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    room = 0.03 * (high - low)
    return {"range": [low - room, high + room]} if low - room < low and high < high + room else {}
