# SPDX-License-Identifier: BSD-2-Clause
"""The search page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.reports import search

LONGEST_QUERY = 200


@require_safe
def results(request: HttpRequest) -> HttpResponse:
    """Show what holds all words of `?q=`."""
    query = request.GET.get("q", "")[:LONGEST_QUERY].replace("\0", "")
    context = {"q": query, "groups": search.search(query), "shortest": search.SHORTEST_WORD}
    return render(request, "reports/search.html", context)
