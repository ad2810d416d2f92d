# SPDX-License-Identifier: BSD-2-Clause
"""Computes the verdicts of a bundle again from its samples, by the code of the pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from perfweb.counted.loads import is_counted
from perfweb.rawdata.judgements import verdicts_table
from perfweb.rawdata.replay.bundle import Bundle
from perfweb.rawdata.replay.tarwalk import BundleError
from perfweb.runs.judging import CountedSamples, SampleSet, pairs
from perfweb.runs.models import Variant
from perfweb.stats.samples import Metric
from perfweb.verdicts.comparisons import compare_variants
from perfweb.verdicts.doubts import not_judged
from perfweb.verdicts.run_verdicts import Pair

DIGITS = 12
"""Digits that have to agree: another version of a library may sum in another order, which changes the last ones."""

OF_THE_RUN = {"lean", "cautions"}
"""Columns that need more than the samples that count: when they were taken, and those of the sentinel."""

BY_FUNCTION = OF_THE_RUN | {
    "verdict", "lack", "words", "margin", "change", "change_low", "change_high", "p", "equivalence_low",
    "equivalence_high", "level", "detectable", "more_boots",
}  # fmt: skip
"""Columns that need what a counted kernel costs by function, which is no sample."""

_KEY = ("test", "base", "other")


def analyse(bundle: Bundle) -> list[Pair]:
    """Compare the variants of a bundle as the page of its run does. No database is needed.

    Raises BundleError if the samples cannot be analysed.
    """
    variants = [
        Variant(pk=place, name=variant.name, baseline=variant.baseline, position=place)
        for place, variant in enumerate(bundle.variants)
    ]
    keys = {found.name: found.pk for found in variants}
    missing = {(keys[variant], test): reason for variant, test, reason in bundle.missing if variant in keys}
    counted = CountedSamples(set(bundle.tests), dict(_sets(bundle.metrics, keys)), missing)
    try:
        compared = [
            (a, b, compare_variants(a, b, counted, bundle.confidence, bundle.margin)) for a, b in pairs(variants)
        ]
        return [Pair(a, b, found if bundle.done else not_judged(found)) for a, b, found in compared]
    except (ValueError, ArithmeticError) as error:
        raise BundleError(f"samples.csv: its samples cannot be analysed: {error}") from None


def _sets(metrics: Sequence[Metric], variants: dict[str, int]) -> Iterator[tuple[tuple[int, str], SampleSet]]:
    for metric in metrics:
        for name, boots in metric.variants.items():
            if name not in variants:
                raise BundleError(f"samples.csv has a variant {name!r}, which bundle.json does not know")
            values = [value for boot in boots for value in boot]
            places = [place for place, boot in enumerate(boots) for _ in boot]
            seeds = {place: seed for place, seed in enumerate(metric.seeds[name]) if seed is not None}
            counted = is_counted(metric.test)
            samples = SampleSet(values, places, metric.unit, metric.direction, seeds=seeds, counted=counted)
            yield (variants[name], metric.test), samples


def differences(bundle: Bundle, analysed: Sequence[Pair]) -> list[str]:
    """Describe the differences between the verdicts and numbers of a bundle and those computed here.

    Numbers agree when they are the same to DIGITS digits. Columns in OF_THE_RUN, of counted tests those in BY_FUNCTION,
    and unknown ones are not compared.
    """
    table = verdicts_table(comparison for pair in analysed for comparison in pair.compared)
    columns = [column.name for column in table.columns]
    here = {_key(row): row for row in (dict(zip(columns, cells, strict=True)) for cells in table.rows())}
    there = {_key(row): row for row in bundle.verdicts}
    found = []
    if len(there) < len(bundle.verdicts):
        found.append("the bundle has two verdicts on the same test and variants")
    for key in [*here, *(key for key in there if key not in here)]:
        what = f"{key[0]}, {key[2]} against {key[1]}"
        if key not in here or key not in there:
            found.append(f"{what}: there is no verdict {'here' if key not in here else 'in the bundle'}")
            continue
        elsewhere = BY_FUNCTION if is_counted(key[0]) else OF_THE_RUN
        found += [
            f"{what}: {name} is {_shown(here[key][name])} here and {_shown(there[key].get(name))} in the bundle"
            for name in columns
            if name not in elsewhere and not _same(here[key][name], there[key].get(name))
        ]
    return found


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row.get(name))[:200] for name in _KEY)


def _same(here: Any, there: Any) -> bool:
    if isinstance(here, float) and isinstance(there, int | float) and not isinstance(there, bool):
        return math.isclose(here, there, rel_tol=10.0**-DIGITS, abs_tol=10.0**-DIGITS)
    return bool(here == there) and isinstance(here, bool) == isinstance(there, bool)


def _shown(value: object) -> str:
    return repr(value)[:80]
