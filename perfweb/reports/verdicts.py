# SPDX-License-Identifier: BSD-2-Clause
"""What runs say in one line each: the baseline against every other variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfweb.reports.comparisons import CountedSamples, TestComparison, compare_variants, counted_samples, pairs, tally
from perfweb.runs.models import Run, Variant
from perfweb.stats.student import DEFAULT_CONFIDENCE


@dataclass(frozen=True)
class Pair:
    """Two variants of a run and how they compare."""

    a: Variant
    b: Variant
    compared: list[TestComparison]

    @property
    def tally(self) -> str:
        return tally(self.compared)


def verdicts(runs: Sequence[Run]) -> list[tuple[Run, list[Pair]]]:
    """Compare the variants of each run: two queries, however many runs. Wants `variants` prefetched."""
    counted = counted_samples(runs)
    return [(run, run_pairs(run.variants.all(), counted[run.pk])) for run in runs]


def run_pairs(variants: Iterable[Variant], counted: CountedSamples) -> list[Pair]:
    """Compare the baseline of one run with each other variant."""
    return [Pair(a, b, compare_variants(a, b, counted, DEFAULT_CONFIDENCE)) for a, b in pairs(variants)]
