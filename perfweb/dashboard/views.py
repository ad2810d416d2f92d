# SPDX-License-Identifier: BSD-2-Clause
"""The first page: tracked branches, the newest results, current runs, the queue, and the latest verdicts."""

from __future__ import annotations

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.dashboard.grid import POINTS, current_grid
from perfweb.dashboard.heads import branches_of, read_heads
from perfweb.runs import progress, queue, states
from perfweb.runs.models import FINAL_STATES, Import, Run, RunState
from perfweb.runs.testbeds import shown_testbeds
from perfweb.verdicts.run_verdicts import verdicts

LATEST = 5
LONGEST_QUEUE = 25


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the runs that hold a testbed with their live progress, paused runs with the reason, the queue, and the
    latest verdicts: those measured here, and the newest of each import.
    """
    runs = Run.objects.select_related("plan", "testbed")
    waiting = queue.forecast()
    newest = Q(imported=None) | Q(pk__in=Import.objects.newest_runs(LATEST))
    testbeds = shown_testbeds()
    over = runs.filter(newest, testbed__in=testbeds, state__in=FINAL_STATES).prefetch_related("variants")
    context = {
        "running": [(run, progress.latest(run.pk)) for run in runs.filter(state__in=[*states.ACTIVE, RunState.PAUSED])],
        "queue": waiting[:LONGEST_QUEUE],
        "waiting": len(waiting),
        "latest": verdicts(list(over[:LATEST])),
        "heads": read_heads(testbeds),
        "branches": branches_of(testbeds).count(),
        "grid": current_grid(testbeds),
        "points": POINTS,
        "samples": any(testbed.sample for testbed in testbeds),
    }
    return render(request, "dashboard/home.html", context)
