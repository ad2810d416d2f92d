# SPDX-License-Identifier: BSD-2-Clause
"""Latencies of single transactions: the percentiles that netperf reports with each sample of a request/response test,
and those of netblast's probes at each offered load.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib.postgres.aggregates import ArrayAgg

from perfweb.figures.plots import Figure, drawn, slots_axis
from perfweb.runs.catalogue import LOADS
from perfweb.runs.models import Sample
from perfweb.verdicts.sides import Side


@dataclass(frozen=True)
class Kind:
    """Metrics in microseconds that belong together, in the order in which they grow, each with its head in a table."""

    name: str
    title: str
    heads: Mapping[str, str]
    axis: str


def _at_loads(share: str, words: str) -> Kind:
    """One percentile at each load."""
    heads = {f"latency.{share}.{load}": f"at {load} %" for load in LOADS}
    return Kind(f"latency-{share}", f"Latency under load, {words}", heads, f"of the highest rate without loss: {words}")


KINDS = (
    Kind(
        "latency",
        "Latency of transactions",
        {
            "latency.min": "min",
            "latency.p50": "p50",
            "latency.p90": "p90",
            "latency.p99": "p99",
            "latency.max": "max",
        },
        "share of the transactions that took no longer",
    ),
    _at_loads("p50", "which half of the probes did not exceed"),
    _at_loads("p90", "which 90 % of the probes did not exceed"),
    _at_loads("p99", "which 99 % of the probes did not exceed"),
)


@dataclass(frozen=True)
class Latencies:
    """The latencies of one kind in one test: for each side with any, the values of its samples by metric."""

    kind: Kind
    sides: Mapping[str, Mapping[str, Sequence[float]]]

    @property
    def metrics(self) -> list[str]:
        """The metrics that any side has, the fastest transactions first."""
        return [name for name in self.kind.heads if any(name in found for found in self.sides.values())]

    @property
    def heads(self) -> list[str]:
        return [self.kind.heads[name] for name in self.metrics]

    @property
    def caption(self) -> str:
        return f"{self.kind.title}, in µs, median over the samples"

    @property
    def rows(self) -> list[tuple[str, list[float | None]]]:
        """Each side with the median over its samples of each metric."""
        return [
            (label, [statistics.median(found[name]) if name in found else None for name in self.metrics])
            for label, found in self.sides.items()
        ]


def read_latencies(sides: Sequence[Side], tests: Iterable[str]) -> dict[str, list[Latencies]]:
    """Read the latencies that the sides have in tests: one query."""
    side_of = {variant.pk: side.label for side in sides for variant in side.variants}
    rows = (
        Sample.objects.filter(measurement__boot__variant__in=side_of, measurement__test__in=list(tests))
        .valid()
        .filter(metric__in=[name for kind in KINDS for name in kind.heads], value__gt=0)
        .order_by()
        .values_list("measurement__boot__variant_id", "measurement__test", "metric")
        .annotate(values=ArrayAgg("value"))
    )
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for variant, test, metric, values in rows:
        of_test = found.setdefault(test, {side.label: {} for side in sides})
        of_test[side_of[variant]].setdefault(metric, []).extend(values)
    return {
        test: [made for kind in KINDS if (made := _of_kind(kind, by_side)).sides] for test, by_side in found.items()
    }


def _of_kind(kind: Kind, by_side: Mapping[str, Mapping[str, Sequence[float]]]) -> Latencies:
    """The values of one kind for each side; sides without any are left out."""
    chosen = {
        label: {name: values for name, values in found.items() if name in kind.heads}
        for label, found in by_side.items()
    }
    return Latencies(kind, {label: found for label, found in chosen.items() if found})


def latency_figure(latencies: Latencies, labels: Sequence[str]) -> Figure:
    """Draw the metrics of each sample side by side, on a logarithmic scale, with a line through the medians.

    `labels` are those of all sides of the page, so that each keeps its colour and marker.
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
            "xaxis": slots_axis(latencies.heads, latencies.kind.axis),
            "yaxis": {"type": "log", "title": {"text": "µs"}},
        },
    }
