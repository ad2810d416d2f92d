# SPDX-License-Identifier: BSD-2-Clause
"""Downloads: samples, description and archive of a run, input for ministat, and single artefacts."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from perfweb.reports import rawdata
from perfweb.reports.comparisons import counted_samples
from perfweb.reports.streaming import stream
from perfweb.reports.views.runs import find_run
from perfweb.runs.models import Artefact

PLAIN_TEXT = "text/plain; charset=utf-8"


@require_safe
def samples_csv(request: HttpRequest, number: int) -> HttpResponseBase:
    """Send all samples of a run as CSV (RFC 4180, lines end with LF)."""
    return stream(request, rawdata.samples_csv(find_run(number)), "text/csv; charset=utf-8")


@require_safe
def run_json(request: HttpRequest, number: int) -> HttpResponse:  # noqa: ARG001
    """Send everything that is known about a run, but the texts of artefacts, as JSON."""
    return HttpResponse(rawdata.run_json(find_run(number)), content_type="application/json")


@require_safe
def plan_yaml(request: HttpRequest, number: int) -> HttpResponse:  # noqa: ARG001
    """Send the plan of a run as it was submitted."""
    return HttpResponse(find_run(number).plan.text, content_type=PLAIN_TEXT)


@require_safe
def raw_tar(request: HttpRequest, number: int) -> HttpResponseBase:
    """Send everything of a run as a tar archive."""
    run = find_run(number)
    response = stream(request, rawdata.run_tar(run), "application/x-tar")
    response.headers["Content-Disposition"] = f'attachment; filename="run-{run.pk}.tar"'
    return response


@require_safe
def ministat_input(request: HttpRequest, number: int, variant: str, test: str) -> HttpResponse:  # noqa: ARG001
    """Send the samples that enter the statistics of one test on one variant, one number on a line."""
    run = find_run(number)
    counted = counted_samples([run])[run.pk]
    keys = [found.pk for found in run.variants.all() if found.name == variant]
    samples = counted.sets.get((keys[0], test)) if keys else None
    if samples is None:
        raise Http404(f"Run {number} has no samples of “{test}” on a variant “{variant}”; its page lists what it has.")
    return HttpResponse(rawdata.ministat_lines(samples.values), content_type=PLAIN_TEXT)


@require_safe
def artefact(request: HttpRequest, key: int) -> HttpResponse:  # noqa: ARG001
    """Send one artefact as plain text, byte for byte: a browser interprets nothing in it."""
    try:
        found = Artefact.objects.get(pk=key)
    except Artefact.DoesNotExist:
        raise Http404(f"There is no artefact {key}. The page of a run links to those that it has.") from None
    filename = found.name.replace("/", "_")
    return HttpResponse(
        bytes(found.content),
        content_type=Artefact.CONTENT_TYPE,
        headers={
            "Content-Disposition": f'inline; filename="{filename}"',
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
        },
    )
