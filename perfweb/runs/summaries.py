# SPDX-License-Identifier: BSD-2-Clause
"""Summaries of the counted samples of runs: what lists and timelines read instead of the samples.

Whoever adds samples to a run that is over (an import) calls `summarise` afterwards.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Avg, Count, F, Max, Min, StdDev

from perfweb.runs.models import HostFacts, Sample, Summary, Variant

RUNS_AT_ONCE = 200
_KEY = {"variant": "measurement__boot__variant_id", "test": "measurement__test"}
_VALUES = ("unit", "direction", "n", "mean", "deviation", "minimum", "maximum")


def summarise(numbers: Sequence[int]) -> None:
    """Make the summaries of runs from their counted samples; those that are there already are made anew."""
    for first in range(0, len(numbers), RUNS_AT_ONCE):
        some = numbers[first : first + RUNS_AT_ONCE]
        Summary.objects.filter(run__in=some).delete()
        Summary.objects.bulk_create(_summaries(some), batch_size=1000)


def environment_digest(facts: Iterable[tuple[str, object]]) -> str:
    """Return a digest of what is known about hosts, given as (role, facts); empty if nothing is."""
    known = sorted(facts, key=lambda pair: pair[0])
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:32] if known else ""


def _summaries(numbers: Sequence[int]) -> Iterator[Summary]:
    of_run: dict[int, list[tuple[str, object]]] = {number: [] for number in numbers}
    for number, role, facts in HostFacts.objects.filter(run__in=numbers).values_list("run_id", "role", "facts"):
        of_run[number].append((role, facts))
    environments = {number: environment_digest(facts) for number, facts in of_run.items()}
    variants = {
        variant.pk: variant
        for variant in Variant.objects.filter(run__in=numbers).select_related("run__plan", "run__testbed", "build")
    }
    for row in _aggregated(numbers):
        variant = variants[row["variant"]]
        run, build = variant.run, variant.build
        yield Summary(
            run_id=run.pk,
            variant=variant,
            test=row["test"],
            series=f"{run.testbed.name}/{run.plan.name}/{variant.name}",
            at=(build.committed if build else None) or run.created,
            revision=build.revision if build else "",
            environment=environments[run.pk],
            **{name: row[name] for name in _VALUES},
        )


def _aggregated(numbers: Sequence[int]) -> Iterable[Mapping[str, Any]]:
    """The numbers of each variant and test; samples of one test have one unit and one direction."""
    rows: Iterable[Mapping[str, Any]] = (
        Sample.objects.counted()
        .filter(measurement__boot__run__in=numbers)
        .order_by()
        .values("unit", "direction", **{name: F(path) for name, path in _KEY.items()})
        .annotate(
            n=Count("pk"),
            mean=Avg("value"),
            deviation=StdDev("value", sample=True),
            minimum=Min("value"),
            maximum=Max("value"),
        )
    )
    return rows
