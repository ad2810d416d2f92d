# SPDX-License-Identifier: BSD-2-Clause
"""Summaries of the counted samples of runs, which lists and timelines read instead of the samples.

Code that adds samples to a finished run (an import) calls `summarise` afterwards.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q

from perfweb.runs.bulk import copy_rows
from perfweb.runs.judging import NO_SAMPLES, RULES, SampleSet, differ, judged, judged_sets, load_of, pairs
from perfweb.runs.models import HostFacts, Run, Summary, Variant
from perfweb.stats.comparison import Comparison, among
from perfweb.stats.summary import summarize

RUNS_AT_ONCE = 200

PASSING = frozenset({"load_average"})
"""Facts about hosts in runs of older versions that differ at each check."""

Sets = Mapping[tuple[int, str], SampleSet]
"""The samples of one run by variant's key and test."""


def summarise(numbers: Sequence[int]) -> None:
    """Make the summaries of runs from their counted samples; existing ones are replaced."""
    for first in range(0, len(numbers), RUNS_AT_ONCE):
        some = numbers[first : first + RUNS_AT_ONCE]
        with transaction.atomic():
            Summary.objects.filter(run__in=some).delete()
            copy_rows(_summaries(some))


def summaries_of(runs: Iterable[Run], *only: str) -> dict[int, list[Summary]]:
    """Return the summaries of runs by number: one query for finished runs judged by the present statistics.

    For the others they are made from the samples and not stored: three queries for any number of runs. If only some
    fields are requested, `run_id` and `rules` among them, rows with these replace the summaries, which takes lists a
    tenth of the time.
    """
    found: dict[int, list[Summary]] = {run.pk: [] for run in runs}
    over = [run.pk for run in runs if run.is_over]
    kept = Summary.objects.filter(run__in=over).order_by()
    rows: Iterable[Any] = kept.values_list(*only, named=True) if only else kept
    for row in rows:
        found[row.run_id].append(row)
    anew = [number for number, old in found.items() if not old or any(row.rules != RULES for row in old)]
    for number in anew:
        found[number] = []
    for summary in _summaries(anew) if anew else ():
        found[summary.run_id].append(summary)
    return found


def lasting(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a host that can explain a result."""
    return {name: value for name, value in facts.items() if name not in PASSING}


def facts_of(runs: Iterable[int]) -> dict[int, dict[str, dict[str, Any]]]:
    """Return the facts about the hosts of runs, by number of the run and role: one query, none without runs."""
    found: dict[int, dict[str, dict[str, Any]]] = {run: {} for run in runs}
    for run, role, facts in HostFacts.objects.filter(run__in=found).values_list("run_id", "role", "facts"):
        found[run][role] = facts
    return found


def environment_digest(facts: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Return a digest of the facts about hosts, given as (role, facts); empty without any."""
    known = sorted(((role, lasting(values)) for role, values in facts), key=lambda pair: pair[0])
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:32] if known else ""


def _summaries(numbers: Sequence[int]) -> Iterator[Summary]:
    facts = facts_of(numbers)
    variants: dict[int, list[Variant]] = {number: [] for number in numbers}
    for variant in Variant.objects.filter(run__in=numbers).select_related("run__plan", "run__testbed", "build"):
        variants[variant.run_id].append(variant)
    sets: dict[int, dict[tuple[int, str], SampleSet]] = {number: {} for number in numbers}
    for number, key, test, samples in judged_sets(Q(measurement__boot__run__in=numbers)):
        sets[number][key, test] = samples
    for number in numbers:
        verdicts = _verdicts(variants[number], sets[number])
        environment = environment_digest(facts[number].items())
        for variant in variants[number]:
            yield from _of_variant(variant, environment, sets[number], verdicts)


def _verdicts(variants: Sequence[Variant], sets: Sets) -> dict[tuple[int, str], Comparison]:
    """Compare each variant of one run with the baseline, in all tests in which both have samples."""
    found = {}
    for a, b in pairs(variants):
        tests = [test for variant, test in sets if variant == b.pk]
        sides = [(test, sets.get((a.pk, test), NO_SAMPLES), sets[b.pk, test]) for test in tests]
        compared = [judged(ours, theirs, load=load_of(test, ours, theirs)) for test, ours, theirs in sides]
        found.update({(b.pk, test): result for test, result in zip(tests, among(compared), strict=True)})
    return found


def _of_variant(
    variant: Variant, environment: str, sets: Sets, verdicts: Mapping[tuple[int, str], Comparison]
) -> Iterator[Summary]:
    run, build = variant.run, variant.build
    for (key, test), samples in sets.items():
        if key != variant.pk:
            continue
        result = verdicts.get((key, test))
        numbers = result.b if result and result.b else summarize(samples.values)
        change = result.effect.interval if result and result.effect else None
        yield Summary(
            run_id=run.pk,
            variant=variant,
            test=test,
            series=f"{run.testbed.name}/{run.plan.name}/{variant.name}",
            at=(build.committed if build else None) or run.created,
            revision=build.revision if build else "",
            environment=environment,
            unit=samples.unit,
            direction=samples.direction,
            n=numbers.n,
            mean=numbers.mean,
            deviation=None if math.isnan(numbers.deviation) else numbers.deviation,
            minimum=numbers.minimum,
            maximum=numbers.maximum,
            boots_differ=differ(samples),
            verdict=str(result.verdict) if result else "",
            lack=str(result.lack) if result and result.lack else "",
            change=change.percent if change else None,
            change_low=change.low if change else None,
            change_high=change.high if change else None,
            rules=RULES,
        )
