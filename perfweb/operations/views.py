# SPDX-License-Identifier: BSD-2-Clause
"""Health and metrics. They are public like the pages, and show nothing that these do not show."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from perfweb.operations import metrics
from perfweb.operations.health import NOTES, OK, answer


@require_safe
@never_cache
@vary_on_headers("Accept")
def health(request: HttpRequest) -> HttpResponse:
    """Report the state of each part: 200 if all parts work, 503 otherwise. Browsers get a page, programs JSON."""
    found = answer()
    good = all(state == OK for part, state in found.items() if part not in NOTES)
    status = 200 if good else 503
    if request.get_preferred_type(["application/json", "text/html"]) == "text/html":
        return render(request, "operations/health.html", {"parts": found, "good": good}, status=status)
    return JsonResponse(found, status=status)


@require_safe
@never_cache
def numbers(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Send the metrics for Prometheus."""
    return HttpResponse(metrics.exposition(), content_type=metrics.CONTENT_TYPE)
