# SPDX-License-Identifier: BSD-2-Clause
"""Graphs of the sentinel of a run: its boots and those of the variants over time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from perfweb.figures.graphs import Graph
from perfweb.figures.plots import Figure, beyond, level, series_look
from perfweb.stats.drift import Watched
from perfweb.verdicts import names
from perfweb.verdicts.numbers import percent
from perfweb.verdicts.sentinels import Sentinel, WatchedTest


def sentinel_graphs(sentinel: Sentinel) -> list[tuple[WatchedTest, Graph]]:
    """Return each test of a sentinel with its graph."""
    return [(test, Graph(*_named(test), _figure(test, sentinel.variant))) for test in sentinel.tests]


def _named(test: WatchedTest) -> tuple[str, str]:
    """The key and the title of a graph."""
    return f"sentinel-{names.anchor(test.test)}", f"{test.test}: boots of the sentinel and of the variants over time"


def _figure(test: WatchedTest, sentinel: str) -> Figure:
    """Draw the mean of each boot over time, in percent of the mean of all boots of its kind: a line through those of
    the sentinel, and the points of the variants.
    """
    began = min(boot.at for boot in [*test.sentinel, *(boot for line in test.variants.values() for boot in line.boots)])
    traces = [
        {**_trace(line.boots, began), **series_look(line.position, name, size=6), "mode": "markers"}
        for name, line in sorted(test.variants.items(), key=lambda item: item[1].position)
    ]
    number = 1 + max((line.position for line in test.variants.values()), default=-1)
    for mode in ("lines", "markers"):
        look = series_look(number, f"sentinel ({sentinel})", size=9)
        traces.append({**_trace(test.sentinel, began), **look, "mode": mode})
    return {
        "data": traces,
        "layout": {
            "height": 220,
            "xaxis": {"title": {"text": "minutes"}, **beyond([x for trace in traces for x in trace["x"]])},
            "yaxis": {"title": {"text": "% of own mean"}},
            "shapes": [level(100.0)],
        },
    }


def _trace(boots: Sequence[Watched], began: float) -> Figure:
    means = [fmean(boot.samples) for boot in boots]
    shares = [100 * mean / fmean(means) for mean in means]
    minutes = [round((boot.at - began) / 60, 2) for boot in boots]
    return {
        "type": "scatter",
        "x": minutes,
        "y": [round(share, 3) for share in shares],
        "text": [f"{percent(share)} after {at:.1f} min" for share, at in zip(shares, minutes, strict=True)],
        "hovertemplate": "%{text}",
    }
