# SPDX-License-Identifier: BSD-2-Clause
"""Pages of the documentation."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from perfweb.manual.documents import KINDS, MOVED, documents


@require_safe
def contents(request: HttpRequest) -> HttpResponse:
    """List all documents by the purpose of their readers."""
    kinds = [
        (key, title, purpose, [one for one in documents().values() if one.kind == key])
        for key, (title, purpose) in KINDS.items()
    ]
    return render(request, "manual/contents.html", {"kinds": kinds})


@require_safe
def document(request: HttpRequest, document: str) -> HttpResponse:
    """Show one document; redirect from a former name."""
    if document in MOVED:
        return redirect("manual:document", MOVED[document], permanent=True)
    found = documents().get(document)
    if not found:
        raise Http404("No such document. /docs/ lists all documents.")
    title = KINDS[found.kind][0] if found.kind in KINDS else ""
    return render(request, "manual/document.html", {"document": found, "kind": title})
