# SPDX-License-Identifier: BSD-2-Clause
"""Testbeds: health, facts and noise."""

from __future__ import annotations

from django.db.models import prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.figures.graphs import Graph, respond
from perfweb.figures.plots import runs_figure
from perfweb.figures.testbeds import history
from perfweb.lab.models import Testbed
from perfweb.reports.calibrations import BUDGETS, calibrated, noise_over_runs, trust
from perfweb.runs import queue
from perfweb.runs.models import Run
from perfweb.runs.testbeds import health
from perfweb.verdicts.environment import host_table
from perfweb.verdicts.results import NOISY_PERCENT
from perfweb.verdicts.run_verdicts import verdicts


@require_safe
def testbed_list(request: HttpRequest) -> HttpResponse:
    """Show all testbeds with their health."""
    testbeds = list(Testbed.objects.prefetch_related("hosts"))
    return render(request, "reports/testbed_list.html", {"testbeds": health(testbeds)})


@require_safe
def testbed(request: HttpRequest, name: str) -> HttpResponse:
    """Show one testbed: its hosts as of the latest run, its noise by test, its latest runs."""
    try:
        found = Testbed.objects.get(name=name)
    except Testbed.DoesNotExist:
        known = ", ".join(Testbed.objects.values_list("name", flat=True)[:50]) or "none yet"
        raise Http404(f"There is no testbed “{name}”. Registered: {known}.") from None
    (state,) = health([found])
    prefetch_related_objects(state.runs, "plan", "testbed", "variants")
    described = Run.objects.filter(testbed=found, host_facts__isnull=False).first()
    hosts, facts = host_table(described) if described else ([], [])
    rows, past = verdicts(state.runs), history(found)
    tests, scatter = calibrated(found), noise_over_runs(found)
    calibrations = sorted({run for runs in scatter.values() for run in runs})
    letters = past.letters
    calibrated_graph, noise_graph, drift_graph = (
        Graph(name, label, runs_figure(lines, runs, unit, letters)) if lines else None
        for name, label, lines, runs, unit in (
            ("scatter", "How boots scatter, over calibrations", scatter, calibrations, "deviation of boots, %"),
            ("noise", "Noise of each test over runs", past.noise_by_run, past.runs, "relative deviation, %"),
            ("drift", "The baseline over runs", past.drift, past.runs, "% of its median"),
        )
    )
    context = {
        "health": state,
        "machines": found.hosts.all(),
        "described": described,
        "hosts": hosts,
        "host_facts": facts,
        "noise": past.noise,
        "followed": len(past.runs),
        "calibrated": tests,
        "trust": trust([test.row for test in tests]),
        "budgets": BUDGETS,
        "noisy": NOISY_PERCENT,
        "calibrated_graph": calibrated_graph,
        "noise_graph": noise_graph,
        "drift_graph": drift_graph,
        "changes": past.changes,
        "rows": rows,
        "queue": queue.forecast(found),
    }
    return respond(request, "reports/testbed.html", context, [calibrated_graph, noise_graph, drift_graph])
