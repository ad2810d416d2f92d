# SPDX-License-Identifier: BSD-2-Clause
"""The tests of a topic over the newest runs."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from perfweb.figures.graphs import Graph, respond
from perfweb.headers import revalidated
from perfweb.parameters import number_in
from perfweb.reports.topics import known_topics, read_topic
from perfweb.verdicts import names
from perfweb.verdicts.tags import tag_of_database


@require_safe
@cache_control(no_cache=True)
@revalidated(tag_of_database)
def topic(request: HttpRequest, name: str) -> HttpResponse:
    """Show all tests of a topic over the newest runs; `?before=` takes those with a lower number."""
    known = known_topics()
    if name not in known:
        raise Http404(f"There is no topic “{name}”. There are: {', '.join(known)}.")
    before = number_in(request, "before")
    found = read_topic(known[name], before)
    tests = [
        (history, Graph(f"test-{names.anchor(history.test)}", f"Every sample of {history.test}", history.figure))
        for history in found.tests
    ]
    context = {
        "name": name,
        "others": [other for other in known if other != name],
        "topic": found,
        "tests": tests,
        "older": found.older,
        "narrowed": before is not None,
    }
    return respond(request, "reports/topic.html", context, [graph for _, graph in tests])
