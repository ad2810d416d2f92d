# SPDX-License-Identifier: BSD-2-Clause
"""The effect of each knob on each test, at each number of CPUs, for a run whose variants differ in knobs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from perfweb.figures.graphs import Graph, respond
from perfweb.figures.plots import scaling_figure
from perfweb.reports.knobs import KnobResults, knob_settings
from perfweb.reports.pages.runs import find_run
from perfweb.runs.judging import counted_samples
from perfweb.verdicts import names
from perfweb.verdicts.numbers import scale_for


@require_safe
def matrix(request: HttpRequest, number: int) -> HttpResponse:
    """Show the main effects and interactions of the knobs that differ between the variants of a run."""
    run = find_run(number)
    variants = list(run.variants.all())
    results = KnobResults(variants, knob_settings(variants), counted_samples([run])[number])
    rows = results.rows()
    graphs = [graph for test in results.tests if (graph := _scaling_graph(results, test))]
    context = {
        "run": run,
        "tests": results.tests,
        "mains": [row for row in rows if len(row.factors) == 1],
        "interactions": [row for row in rows if len(row.factors) > 1],
        "by_cpus": results.rows_by_cpus(),
        "graphs": graphs,
        "knobs": results.knobs,
    }
    return respond(request, "reports/matrix.html", context, graphs)


def _scaling_graph(results: KnobResults, test: str) -> Graph | None:
    """The test over the number of CPUs, if the variants differ in it."""
    found = results.measured(test)
    if not results.cpu_counts or not found:
        return None
    scale = scale_for(found[0][1].unit, max(max(samples.values) for _, samples in found))
    figure = scaling_figure(results.scaling(test), scale)
    return Graph(f"scaling-{names.anchor(test)}", f"{test} over the number of CPUs", figure)
