# SPDX-License-Identifier: BSD-2-Clause
"""Health and metrics. They are public like the pages, and show nothing that these do not show."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from perfweb.operations import metrics
from perfweb.operations.health import NOTES, OK, answer


@require_safe
@never_cache
def health(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Report the state of each part: 200 if all parts work, 503 otherwise."""
    found = answer()
    good = all(state == OK for part, state in found.items() if part not in NOTES)
    return JsonResponse(found, status=200 if good else 503)


@require_safe
@never_cache
def numbers(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Send the metrics for Prometheus."""
    return HttpResponse(metrics.exposition(), content_type=metrics.CONTENT_TYPE)
