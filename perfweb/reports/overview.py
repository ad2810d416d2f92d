# SPDX-License-Identifier: BSD-2-Clause
"""The table of a run's results, tests by variants: in full from the samples, or in brief from the summaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfweb.runs.models import Artefact, Measurement, MeasurementState, Summary, Variant
from perfweb.verdicts import names
from perfweb.verdicts.numbers import Scale, scale_for
from perfweb.verdicts.results import RunResults, Series, TestResults
from perfweb.verdicts.run_verdicts import PairVerdicts, TestVerdict


@dataclass(frozen=True)
class Cell:
    """One test on one variant: its samples (None if there are none), its measurements boot by boot, and its verdict
    (None for the baseline itself).
    """

    variant: Variant
    series: Series | None
    measurements: list[Measurement]
    verdict: TestVerdict | None

    @property
    def failures(self) -> int:
        return sum(measurement.state != MeasurementState.OK for measurement in self.measurements)

    @property
    def voids(self) -> int:
        return sum(measurement.voids for measurement in self.measurements)

    @property
    def logs(self) -> list[tuple[int, Artefact]]:
        """The tool's output of each boot, by the boot's place in the run."""
        found = ((measurement.boot.position, list(measurement.artefacts.all())) for measurement in self.measurements)
        return [(position, texts[0]) for position, texts in found if texts]


@dataclass(frozen=True)
class Row:
    """One test: its results on each variant, and the verdict on each but the baseline."""

    test: TestResults
    cells: list[Cell]
    verdicts: list[TestVerdict]


@dataclass(frozen=True)
class BriefCell:
    """The summary of one test on one variant, None if there are no samples."""

    summary: Summary | None
    failures: int
    verdict: TestVerdict | None


@dataclass(frozen=True)
class BriefRow:
    """One test in brief."""

    test: str
    scale: Scale
    cells: list[BriefCell]


def full_rows(results: RunResults, pairs: Iterable[PairVerdicts]) -> list[Row]:
    """Arrange the tests of `results` with the run's verdicts on all its tests."""
    by_variant = _by_variant(pairs)
    rows = []
    for test in results.tests:
        of_variant = {series.variant.pk: series for series in test.primary}
        measured: dict[int, list[Measurement]] = {}
        for measurement in test.counted:
            measured.setdefault(measurement.boot.variant_id, []).append(measurement)
        cells = [
            Cell(
                variant,
                of_variant.get(variant.pk),
                measured.get(variant.pk, []),
                by_variant.get(variant.pk, {}).get(test.name),
            )
            for variant in results.variants
        ]
        rows.append(Row(test, cells, [verdicts[test.name] for verdicts in by_variant.values()]))
    return rows


def brief_rows(
    variants: Sequence[Variant],
    tests: Iterable[str],
    kept: Iterable[Summary],
    failures: Mapping[tuple[int, str], int],
    pairs: Iterable[PairVerdicts],
) -> dict[str, list[BriefRow]]:
    """Arrange the summaries of a run by topic; `failures` counts failed measurements by variant's key and test."""
    by_variant = _by_variant(pairs)
    of = {(summary.variant_id, summary.test): summary for summary in kept}
    found: dict[str, list[BriefRow]] = {}
    for topic, members in names.by_topic(names.in_order(tests)).items():
        found[topic] = rows = []
        for test in members:
            keys = [(variant.pk, test) for variant in variants]
            known = [of[key] for key in keys if key in of]
            scale = scale_for(known[0].unit if known else "", max((abs(one.mean) for one in known), default=0.0))
            cells = [BriefCell(of.get(key), failures.get(key, 0), by_variant.get(key[0], {}).get(test)) for key in keys]
            rows.append(BriefRow(test, scale, cells))
    return found


def _by_variant(pairs: Iterable[PairVerdicts]) -> dict[int, dict[str, TestVerdict]]:
    return {pair.b.pk: {test.test: test for test in pair.tests} for pair in pairs}
