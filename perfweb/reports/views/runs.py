# SPDX-License-Identifier: BSD-2-Clause
"""The list of runs and the page of one run."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.reports import names
from perfweb.reports.comparisons import TestComparison, counted_samples, pairs
from perfweb.reports.environment import changed_facts, host_table, tunable_rows
from perfweb.reports.figures import samples_figure, topic_figure
from perfweb.reports.graphs import Graph, respond
from perfweb.reports.results import RunResults, Series, TestResults, run_results
from perfweb.reports.verdicts import Pair, run_pairs, verdicts
from perfweb.runs.models import Artefact, Measurement, MeasurementState, Run, Variant

RUNS_PER_PAGE = 25
MOST_DETAILED = 24
"""Tests that the page of a run shows with graph, numbers and outputs; of more, those of one topic at a time."""

MOST_VERDICTS = 2
"""Verdicts of a test that have columns of their own; more stand in the cells of the variants."""

MOST_DIGITS = 18  # of a number that PostgreSQL's bigint holds


@dataclass(frozen=True)
class Cell:
    """One test on one variant: its samples (None where nothing was delivered), its measurements boot by boot, and how
    it compares with the baseline (None for that itself).
    """

    variant: Variant
    series: Series | None
    measurements: list[Measurement]
    comparison: TestComparison | None

    @property
    def failures(self) -> int:
        return sum(measurement.state != MeasurementState.OK for measurement in self.measurements)

    @property
    def logs(self) -> list[tuple[int, Artefact]]:
        """The tool's output of each boot, by the boot's place in the run."""
        found = ((measurement.boot.position, list(measurement.artefacts.all())) for measurement in self.measurements)
        return [(position, texts[0]) for position, texts in found if texts]


@dataclass(frozen=True)
class OverviewRow:
    """One test: what it gave on each variant, and each comparison."""

    test: TestResults
    cells: list[Cell]
    comparisons: list[TestComparison]


@require_safe
def run_list(request: HttpRequest) -> HttpResponse:
    """Show the runs, newest first; `?before=` shows those with a lower number.

    Pages go by number and not by count: counting would read the whole table.
    """
    runs = Run.objects.select_related("plan", "testbed").prefetch_related("variants")
    before = number_in(request, "before")
    found = list((runs if before is None else runs.filter(number__lt=before))[: RUNS_PER_PAGE + 1])
    newer = Run.objects.none() if before is None else Run.objects.filter(number__gte=before).order_by("number")
    above = list(newer.values_list("number", flat=True)[: RUNS_PER_PAGE + 1])
    context = {
        "rows": verdicts(found[:RUNS_PER_PAGE]),
        "older": found[RUNS_PER_PAGE - 1].pk if len(found) > RUNS_PER_PAGE else None,
        "newest": bool(above) and len(above) <= RUNS_PER_PAGE,
        "newer": above[-1] if len(above) > RUNS_PER_PAGE else None,
    }
    return render(request, "reports/run_list.html", context)


@require_safe
def run_detail(request: HttpRequest, number: int) -> HttpResponse:
    """Show what ran where in a run, and every sample; `?topic=` has only the tests of a topic.

    With very many tests each is shown in detail only where a topic was chosen.
    """
    run = find_run(number)
    topic = request.GET.get("topic", "")
    results = run_results(run, topic)
    if topic and not results.tests:
        raise Http404(f"Run {number} has no test of the topic “{topic}”.")
    counted = counted_samples([run])[run.pk]
    compared = run_pairs(results.variants, counted)
    hosts, host_facts = host_table(run)
    earlier, changes = changed_facts(run)
    detailed = results.tests if topic or len(results.tests) <= MOST_DETAILED else []
    topics = _topics(results, alone=not detailed)
    tests = [(test, _test_graph(test)) for test in detailed]
    context = {
        "run": run,
        "results": results,
        "pairs": compared,
        "overview": _overview(results, compared),
        "verdicts_in_cells": len(compared) > MOST_VERDICTS,
        "any_boots_differ": any(comparison.boots_differ for pair in compared for comparison in pair.compared),
        "topic": topic,
        "known_topics": list(names.by_topic(names.in_order(counted.tests))),
        "topics": topics,
        "all_topics": names.by_topic(),
        "tests": tests,
        "tunables": tunable_rows(results),
        "hosts": hosts,
        "host_facts": host_facts,
        "earlier": earlier,
        "changes": changes,
        "transitions": run.transitions.all(),
    }
    graphs = (graph for _, graph in [*topics, *tests])
    return respond(request, "reports/run.html", context, list(graphs))


def number_in(request: HttpRequest, name: str) -> int | None:
    """Return the number of a run that an address gives, None where it gives none or one that cannot be."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < MOST_DIGITS else None


def find_run(number: int) -> Run:
    """Return the run with its plan and testbed, or answer 404 with a way on."""
    try:
        return Run.objects.select_related("plan", "testbed", "imported").get(pk=number)
    except Run.DoesNotExist:
        raise Http404(f"There is no run {number}. The list of runs shows those that there are.") from None


def _topics(results: RunResults, *, alone: bool) -> list[tuple[str, Graph]]:
    """Each topic with its graph; of a run with one variant the samples of each test say the same, and so they do of a
    topic with one test, unless these graphs stand `alone`.
    """
    compared = pairs(results.variants)
    if not compared:
        return []
    by_name = {test.name: test for test in results.tests}
    drawn = [
        (topic, topic_figure([by_name[test] for test in tests], compared[0][0].pk))
        for topic, tests in names.by_topic(by_name).items()
        if alone or len(tests) > 1
    ]
    return [
        (topic, Graph(f"topic-{topic}", f"{topic}: every sample", figure)) for topic, figure in drawn if figure["data"]
    ]


def _test_graph(test: TestResults) -> Graph | None:
    if not test.metrics:
        return None
    return Graph(
        f"test-{names.anchor(test.name)}", f"Every sample of {test.name}, boot by boot", samples_figure(test.metrics[0])
    )


def _overview(results: RunResults, compared: list[Pair]) -> list[OverviewRow]:
    by_variant = {pair.b.pk: {comparison.test: comparison for comparison in pair.compared} for pair in compared}
    rows = []
    for test in results.tests:
        of_variant = {series.variant.pk: series for series in test.primary}
        cells = [
            Cell(
                variant,
                of_variant.get(variant.pk),
                [measurement for measurement in test.measurements if measurement.boot.variant_id == variant.pk],
                by_variant[variant.pk][test.name] if variant.pk in by_variant else None,
            )
            for variant in results.variants
        ]
        rows.append(OverviewRow(test, cells, [comparisons[test.name] for comparisons in by_variant.values()]))
    return rows
