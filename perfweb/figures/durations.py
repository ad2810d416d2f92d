# SPDX-License-Identifier: BSD-2-Clause
"""Durations of single connections: the histograms that tcpconnect prints with each sample.

Its bins are a sixteenth of a doubling wide: shares of connections per bin are a histogram on a logarithmic axis.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery

from perfweb.figures.plots import Figure, drawn
from perfweb.runs.models import Artefact, ArtefactKind, MeasurementState, Sample
from perfweb.verdicts.sides import Side

QUANTILES = {0.0: "min", 0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9", 1.0: "max"}

_NUMBER = r"\d{1,12}(?:\.\d{1,6})?"
_LINE = re.compile(
    r"^== sample (?P<sample>\d{1,9}):(?P<void>.*, void: )?|"
    rf"^took (?P<low>{_NUMBER}) to (?P<high>{_NUMBER}) us: (?P<count>\d{{1,15}})$",
    re.ASCII | re.MULTILINE,
)

Bin = tuple[float, float]
"""Lower and upper bound of a bin, in microseconds."""


@dataclass(frozen=True)
class Durations:
    """The durations of a test's connections: for each side with a histogram, the bins in order with their counts."""

    sides: Mapping[str, Mapping[Bin, int]]

    @property
    def heads(self) -> list[str]:
        return list(QUANTILES.values())

    @property
    def rows(self) -> list[tuple[str, list[float | None]]]:
        """Each side with its quantiles in microseconds."""
        return [(label, [quantile(bins, share) for share in QUANTILES]) for label, bins in self.sides.items()]


def read_bins(text: str, first: int) -> Counter[Bin]:
    """Add up the histograms in a measurement's stored output, from sample `first` on and without void ones; other lines
    are skipped.
    """
    found: Counter[Bin] = Counter()
    counts = False
    for line in _LINE.finditer(text):
        if line["sample"]:
            counts = int(line["sample"]) >= first and not line["void"]
        elif counts and 0 < float(line["low"]) < float(line["high"]) and (count := int(line["count"])):
            found[float(line["low"]), float(line["high"])] += count
    return found


def quantile(bins: Mapping[Bin, int], share: float) -> float:
    """Return the quantile in microseconds for a share of the connections, by linear interpolation within its bin;
    `bins` are in order and not empty.
    """
    wanted, seen = share * sum(bins.values()), 0
    for (low, high), count in bins.items():
        if seen + count >= wanted:
            return low + (high - low) * (wanted - seen) / count
        seen += count
    return max(high for _, high in bins)


def read_durations(sides: Sequence[Side], tests: Iterable[str]) -> dict[str, Durations]:
    """Read the histograms of counted samples that the sides have in tests: one query."""
    side_of = {variant.pk: side.label for side in sides for variant in side.variants}
    counted = Sample.objects.filter(measurement=OuterRef("measurement"), discarded=False, void="").order_by("index")
    texts = (
        Artefact.objects.filter(kind=ArtefactKind.TOOL_OUTPUT, measurement__boot__variant__in=side_of)
        .filter(measurement__test__in=list(tests), measurement__tool="tcpconnect")
        .filter(measurement__state=MeasurementState.OK, measurement__boot__sentinel=False)
        .annotate(first=Subquery(counted.values("index")[:1]))
        .filter(first__isnull=False)
        .values_list("measurement__boot__variant_id", "measurement__test", "first", "content")
    )
    found: dict[str, dict[str, Counter[Bin]]] = {}
    for variant, test, first, content in texts:
        of_test = found.setdefault(test, {side.label: Counter() for side in sides})
        of_test[side_of[variant]].update(read_bins(bytes(content).decode("utf-8", "replace"), first))
    made = {
        test: Durations({label: dict(sorted(bins.items())) for label, bins in of_test.items() if bins})
        for test, of_test in found.items()
    }
    return {test: durations for test, durations in made.items() if durations.sides}


def durations_figure(durations: Durations, labels: Sequence[str]) -> Figure:
    """Draw the histogram of each side as steps, in percent of its connections, over the logarithm of the time.

    `labels` are those of all sides of the page, so that each keeps its colour and marker.
    """
    traces = []
    for number, bins, look in drawn(durations.sides, labels):
        corners = _corners(bins)
        traces.append(
            {
                **look,
                "type": "scatter",
                "mode": "lines",
                "x": [x for x, _ in corners],
                "y": [round(y, 4) for _, y in corners],
                "hovertemplate": "%{x} µs: %{y} %",
                "line": {"dash": "4px,2px"} if number % 2 else {},  # shorter than a step
            }
        )
    return {
        "data": traces,
        "layout": {
            "height": 260,
            "xaxis": {"type": "log", "title": {"text": "µs from socket to close"}},
            "yaxis": {"title": {"text": "% of connections"}, "rangemode": "tozero"},
        },
    }


def _corners(bins: Mapping[Bin, int]) -> list[tuple[float, float]]:
    """The outline of a histogram, zero outside of the bins; neighbours share the same bound."""
    total = sum(bins.values())
    corners: list[tuple[float, float]] = []
    end = None
    for (low, high), count in bins.items():
        if low != end:
            corners += [(end, 0.0)] if end is not None else []
            corners.append((low, 0.0))
        corners += [(low, 100 * count / total), (high, 100 * count / total)]
        end = high
    return [*corners, (end, 0.0)] if end is not None else []
