# SPDX-License-Identifier: BSD-2-Clause
"""How long single transactions take: the percentiles that netperf tells with each sample of a request/response test."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.postgres.aggregates import ArrayAgg

from perfweb.reports.figures import Figure, drawn, slots_axis
from perfweb.reports.sides import Side
from perfweb.runs.models import Sample

PERCENTILES = {
    "latency.min": "least",
    "latency.p50": "50 %",
    "latency.p90": "90 %",
    "latency.p99": "99 %",
    "latency.max": "greatest",
}
"""Metrics in microseconds, and which share of the transactions took no longer."""


@dataclass(frozen=True)
class Latencies:
    """The latencies of one test: for each side that has some, the values of its samples by metric."""

    sides: Mapping[str, Mapping[str, Sequence[float]]]

    @property
    def metrics(self) -> list[str]:
        """The metrics that any side has, the fastest transactions first."""
        return [name for name in PERCENTILES if any(name in found for found in self.sides.values())]

    @property
    def heads(self) -> list[str]:
        return [PERCENTILES[name] for name in self.metrics]

    @property
    def rows(self) -> list[tuple[str, list[float | None]]]:
        """Each side with the median over its samples of each metric."""
        return [
            (label, [statistics.median(found[name]) if name in found else None for name in self.metrics])
            for label, found in self.sides.items()
        ]


def read_latencies(sides: Sequence[Side], tests: Iterable[str]) -> dict[str, Latencies]:
    """Read the latencies that the sides have in tests: one query."""
    side_of = {variant.pk: side.label for side in sides for variant in side.variants}
    rows = (
        Sample.objects.filter(measurement__boot__variant__in=side_of, measurement__test__in=list(tests))
        .valid()
        .filter(metric__in=PERCENTILES, value__gt=0)
        .order_by()
        .values_list("measurement__boot__variant_id", "measurement__test", "metric")
        .annotate(values=ArrayAgg("value"))
    )
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for variant, test, metric, values in rows:
        of_test = found.setdefault(test, {side.label: {} for side in sides})
        of_test[side_of[variant]].setdefault(metric, []).extend(values)
    return {test: Latencies({label: one for label, one in of_test.items() if one}) for test, of_test in found.items()}


def latency_figure(latencies: Latencies, labels: Sequence[str]) -> Figure:
    """Draw each sample's percentiles, side by side, on a logarithmic scale, and a line through the medians.

    `labels` are those of all sides of the page, whose colours and markers stay theirs.
    """
    traces = []
    for number, values, style in drawn(latencies.sides, labels):
        known = [(slot + (number + 0.5) / len(labels), name) for slot, name in enumerate(latencies.metrics)]
        known = [(x, name) for x, name in known if name in values]
        look = {**style, "type": "scatter", "hovertemplate": "%{y} µs"}
        medians = [statistics.median(values[name]) for _, name in known]
        line = {"dash": "dash"} if number % 2 else {}
        points = [(x, value) for x, name in known for value in values[name]]
        traces.append({**look, "mode": "lines", "x": [x for x, _ in known], "y": medians, "line": line})
        traces.append({**look, "mode": "markers", "x": [x for x, _ in points], "y": [y for _, y in points]})
    return {
        "data": traces,
        "layout": {
            "height": 260,
            "xaxis": slots_axis(latencies.heads, "share of the transactions that took no longer"),
            "yaxis": {"type": "log", "title": {"text": "µs"}},
        },
    }
