# SPDX-License-Identifier: BSD-2-Clause
"""The search page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.parameters import ParameterError, text_in
from perfweb.reports import search


@require_safe
def results(request: HttpRequest) -> HttpResponse:
    """Show everything that contains all words of `?q=`."""
    query = text_in(request, "q")
    if len(query.split()) > search.MOST_WORDS:
        raise ParameterError("q", f"it has {len(query.split())} words; {search.MOST_WORDS} at most are possible.")
    groups = search.search(query)
    better = "" if groups else search.suggestion(query)
    context = {"q": query, "groups": groups, "better": better, "shortest": search.SHORTEST_WORD}
    return render(request, "reports/search.html", context)


@require_safe
def completions(request: HttpRequest) -> JsonResponse:
    """Return names that contain the text of `?q=`, each with the address of its page: {name: address}."""
    return JsonResponse({hit.name: hit.address for hit in search.completions(text_in(request, "q").strip())})
