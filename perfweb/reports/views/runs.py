# SPDX-License-Identifier: BSD-2-Clause
"""The list of runs and the page of one run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.reports.comparisons import CountedSamples, TestComparison, compare_variants, counted_samples, pairs, tally
from perfweb.reports.environment import host_table, tunable_rows
from perfweb.reports.figures import samples_figure
from perfweb.reports.results import RunResults, Series, TestResults, run_results
from perfweb.runs.models import Run, Variant
from perfweb.stats.student import DEFAULT_CONFIDENCE

RUNS_PER_PAGE = 25


@dataclass(frozen=True)
class Pair:
    """Two variants of a run and how they compare."""

    a: Variant
    b: Variant
    compared: list[TestComparison]

    @property
    def tally(self) -> str:
        return tally(self.compared)


@dataclass(frozen=True)
class OverviewRow:
    """One test: its samples on each variant (None where nothing was delivered), and each comparison."""

    test: TestResults
    cells: list[tuple[Variant, Series | None]]
    comparisons: list[TestComparison]


@require_safe
def run_list(request: HttpRequest) -> HttpResponse:
    """Show the runs, newest first; `?page=` turns pages."""
    runs = Run.objects.select_related("plan", "testbed").prefetch_related("variants")
    page = Paginator(runs, RUNS_PER_PAGE).get_page(request.GET.get("page"))
    listed = list(page.object_list)
    counted = counted_samples(listed)
    rows = [(run, _pairs(run.variants.all(), counted[run.pk])) for run in listed]
    return render(request, "reports/run_list.html", {"page": page, "rows": rows})


@require_safe
def run_detail(request: HttpRequest, number: int) -> HttpResponse:
    """Show what ran where in a run, and every sample."""
    run = find_run(number)
    results = run_results(run)
    counted = counted_samples([run])[run.pk]
    compared = _pairs(results.variants, counted)
    hosts, host_facts = host_table(run)
    context = {
        "run": run,
        "results": results,
        "pairs": compared,
        "overview": _overview(results, compared),
        "any_boots_differ": any(comparison.boots_differ for pair in compared for comparison in pair.compared),
        "tests": [(test, samples_figure(test.metrics[0]) if test.metrics else None) for test in results.tests],
        "tunables": tunable_rows(results),
        "hosts": hosts,
        "host_facts": host_facts,
        "transitions": run.transitions.all(),
    }
    return render(request, "reports/run.html", context)


def find_run(number: int) -> Run:
    """Return the run with its plan and testbed, or answer 404 with a way on."""
    try:
        return Run.objects.select_related("plan", "testbed").get(pk=number)
    except Run.DoesNotExist:
        raise Http404(f"There is no run {number}. The list of runs shows those that there are.") from None


def _pairs(variants: Iterable[Variant], counted: CountedSamples) -> list[Pair]:
    return [Pair(a, b, compare_variants(a, b, counted, DEFAULT_CONFIDENCE)) for a, b in pairs(variants)]


def _overview(results: RunResults, compared: list[Pair]) -> list[OverviewRow]:
    by_test = [{comparison.test: comparison for comparison in pair.compared} for pair in compared]
    rows = []
    for test in results.tests:
        of_variant = {series.variant.pk: series for series in test.primary}
        cells = [(variant, of_variant.get(variant.pk)) for variant in results.variants]
        rows.append(OverviewRow(test, cells, [comparisons[test.name] for comparisons in by_test]))
    return rows
