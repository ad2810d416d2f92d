# SPDX-License-Identifier: BSD-2-Clause
"""Graphs as Plotly figures, without colours: static/graphs.js adds them from the style sheet, for light and dark.

A figure is {"data": [...], "layout": {...}} as plotly.js takes it. `meta.role` of a trace says which colour of the
style sheet it gets: "series-0" to "series-5" for variants, or the name of a verdict.
"""

from __future__ import annotations

from typing import Any

from perfweb.reports.comparisons import TestComparison
from perfweb.reports.numbers import Scale
from perfweb.reports.results import MetricResults, Series
from perfweb.reports.wording import css_name, difference_words
from perfweb.stats.comparison import Verdict
from perfweb.stats.ratio import Change

Figure = dict[str, Any]

SERIES_COLOURS = 6
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")
_VERDICT_SYMBOLS = {
    Verdict.FASTER: "triangle-right",
    Verdict.SLOWER: "triangle-left",
    Verdict.EQUIVALENT: "circle",
    Verdict.NOT_ENOUGH_DATA: "circle-open",
}
_ROW_PIXELS = 30


def samples_figure(results: MetricResults) -> Figure:
    """Draw every sample of a metric as a point: boots in their order from left to right, in a boot its samples in
    order.

    The order shows what a mean hides: warm-up, drift, and boots that differ from each other. Samples that enter no
    statistics are hollow.
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
            "xaxis": {
                "title": {"text": "boot, in the order of the run"},
                "tickvals": [slot + 0.5 for slot in slots.values()],
                "ticktext": [str(boot) for boot in boots],
                "range": [-0.05, len(boots) + 0.05],
                "zeroline": False,
                "showgrid": False,
            },
            "yaxis": {"title": {"text": results.scale.unit}},
            "shapes": [_boot_edge(slot) for slot in range(1, len(boots))],
            "showlegend": True,
        },
    }


def _samples_trace(series: Series, hollow: bool, scale: Scale, slots: dict[int, int]) -> Figure:
    points = [point for point in series.points if point.hollow is hollow]
    longest = max(point.index for point in series.points) + 1
    number = series.variant.position % SERIES_COLOURS
    note = " (not counted)" if hollow else ""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": series.variant.name,
        "legendgroup": series.variant.name,
        "showlegend": not hollow,
        "x": [slots[point.boot] + (point.index + 0.5) / longest for point in points],
        "y": [point.value / scale.factor for point in points],
        "text": [
            f"boot {point.boot}, sample {point.index + 1}: {scale.text(point.value)} {scale.unit}{note}"
            for point in points
        ],
        "hovertemplate": "%{text}",
        "marker": {"symbol": _SYMBOLS[number] + ("-open" if hollow else ""), "size": 8},
        "meta": {"role": f"series-{number}"},
    }


def _boot_edge(slot: int) -> Figure:
    return {
        "type": "line",
        "x0": slot,
        "x1": slot,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"width": 1, "dash": "dot"},
    }


def intervals_figure(comparisons: list[TestComparison]) -> Figure:
    """Draw the confidence interval of each difference in percent, the largest on top, with a line at zero."""
    drawn = [(effect.interval, comparison) for comparison in comparisons if (effect := comparison.result.effect)]
    drawn.sort(key=lambda row: row[0].percent)
    order = [comparison.test for _, comparison in drawn]
    traces = [
        _intervals_trace(verdict, [row for row in drawn if row[1].result.verdict is verdict])
        for verdict in _VERDICT_SYMBOLS
    ]
    return {
        "data": [trace for trace in traces if trace["y"]],
        "layout": {
            "height": 110 + _ROW_PIXELS * len(drawn),
            "xaxis": {"title": {"text": "difference, %"}, "zeroline": True, "zerolinewidth": 2, "rangemode": "tozero"},
            "yaxis": {"type": "category", "categoryorder": "array", "categoryarray": order, "automargin": True},
            "showlegend": True,
        },
    }


def _intervals_trace(verdict: Verdict, rows: list[tuple[Change, TestComparison]]) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": str(verdict),
        "x": [change.percent for change, _ in rows],
        "y": [comparison.test for _, comparison in rows],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [change.high - change.percent for change, _ in rows],
            "arrayminus": [change.percent - change.low for change, _ in rows],
            "thickness": 1.5,
            "width": 5,
        },
        "text": [f"{comparison.test}: {difference_words(comparison.result)}" for _, comparison in rows],
        "hovertemplate": "%{text}",
        "marker": {"symbol": _VERDICT_SYMBOLS[verdict], "size": 10},
        "meta": {"role": css_name(verdict)},
    }
