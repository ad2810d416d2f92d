# SPDX-License-Identifier: BSD-2-Clause
"""Throughput within samples, as reported by netperf, iperf3 and tcpbench."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfweb.figures.plots import MOST_POINTS, Figure, series_look
from perfweb.runs.models import Measurement, MeasurementState
from perfweb.verdicts.numbers import scale_for
from perfweb.verdicts.results import TestResults


@dataclass(frozen=True)
class Course:
    """A counted sample, with the end of each interval in seconds since its beginning, and the bits/s in it."""

    measurement: Measurement
    number: int
    seconds: Sequence[float]
    rates: Sequence[float]


def interim_figure(results: TestResults) -> Figure | None:
    """Draw a line for each counted sample of a test with intervals; None without any.

    Of a large number of samples it draws some, evenly spread over the run.
    """
    every = list(_courses(results))
    if not every:
        return None
    step = -(-sum(len(course.rates) for course in every) // MOST_POINTS)
    courses = every[::step]
    scale = scale_for("bits/s", max(max(course.rates) for course in courses))
    traces = []
    for course in courses:
        boot, rates = course.measurement.boot, [rate / scale.factor for rate in course.rates]
        where = f"boot {boot.position}, sample {course.number + 1}"
        traces.append({
            **series_look(boot.variant.position, boot.variant.name),
            "type": "scatter", "mode": "lines", "line": {"width": 1}, "x": list(course.seconds), "y": rates,
            "text": [f"{where}: {scale.text(rate)} {scale.unit}" for rate in course.rates],
            "hovertemplate": "%{text}",
        })  # fmt: skip
    return {
        "data": traces,
        "layout": {
            "height": 220,
            "xaxis": {"title": {"text": "seconds since the sample began"}},
            "yaxis": {"title": {"text": scale.unit}},
        },
    }


def _courses(results: TestResults) -> Iterator[Course]:
    counted = {
        (series.variant.pk, point.boot, point.number)
        for series in results.primary
        for point in series.points
        if not point.hollow
    }
    for measurement in results.counted:
        boot = measurement.boot
        if measurement.state != MeasurementState.OK:
            continue
        for number, points in enumerate(measurement.interim):
            if points and (boot.variant_id, boot.position, number) in counted:
                seconds, rates = zip(*points, strict=True)
                yield Course(measurement, number, seconds, rates)
