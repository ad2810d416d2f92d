# SPDX-License-Identifier: BSD-2-Clause
"""Testbeds: health, facts and noise."""

from __future__ import annotations

from django.db.models import prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.lab.models import Testbed
from perfweb.reports.environment import host_table
from perfweb.reports.results import NOISY_PERCENT
from perfweb.reports.testbeds import health, noise
from perfweb.reports.verdicts import verdicts
from perfweb.runs.models import Run


@require_safe
def testbed_list(request: HttpRequest) -> HttpResponse:
    """Show all testbeds with their health."""
    testbeds = list(Testbed.objects.prefetch_related("hosts"))
    return render(request, "reports/testbed_list.html", {"testbeds": health(testbeds)})


@require_safe
def testbed(request: HttpRequest, name: str) -> HttpResponse:
    """Show one testbed: its hosts as the latest run found them, its noise by test, its latest runs."""
    try:
        found = Testbed.objects.get(name=name)
    except Testbed.DoesNotExist:
        known = ", ".join(Testbed.objects.values_list("name", flat=True)[:50]) or "none yet"
        raise Http404(f"There is no testbed “{name}”. Registered: {known}.") from None
    (state,) = health([found])
    prefetch_related_objects(state.runs, "plan", "testbed", "variants")
    described = Run.objects.filter(testbed=found, host_facts__isnull=False).first()
    hosts, facts = host_table(described) if described else ([], [])
    context = {
        "health": state,
        "machines": found.hosts.all(),
        "described": described,
        "hosts": hosts,
        "host_facts": facts,
        "noise": noise(state.runs),
        "noisy": NOISY_PERCENT,
        "rows": verdicts(state.runs),
    }
    return render(request, "reports/testbed.html", context)
