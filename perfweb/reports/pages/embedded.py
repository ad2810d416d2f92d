# SPDX-License-Identifier: BSD-2-Clause
"""Images for other sites: badges and graphs that a README or a pull request shows with <img>."""

from __future__ import annotations

import hashlib

from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from perfweb.figures.badges import badge_of_test, badge_of_tests
from perfweb.figures.levels import shifts
from perfweb.figures.plots import boxes_figure, intervals_figure
from perfweb.figures.svg import render_file
from perfweb.parameters import choice_in
from perfweb.rawdata.downloads import Body, send
from perfweb.rawdata.selections import Selection
from perfweb.reports.pages.comparison import selected_limits
from perfweb.reports.pages.rawdata import compared
from perfweb.reports.pages.timeline import selected_timeline, timeline_graph
from perfweb.verdicts.comparisons import TestComparison
from perfweb.verdicts.doubts import side_comparisons
from perfweb.verdicts.sides import Side, values_by_side

# Proxies of code forges cache an image for its max age, and revalidate it afterwards.
_KEPT = "public, max-age=300"


@require_safe
def comparison_badge(request: HttpRequest, number: int | None = None, a: str = "", b: str = "") -> HttpResponseBase:
    """Send the verdict of a comparison as a badge, with `?test=` that of one test."""
    sides, selection = compared(request, number, a, b)
    found, test = _selected(request, sides)
    if test:
        picture = badge_of_test(found[0])
    else:
        others = ", ".join(side.label for side in sides[1:])
        picture = badge_of_tests(f"{others} vs {sides[0].label}{sides[0].origin.after_comma}", found)
    return _send(request, "badge.svg", picture, selection)


@require_safe
def comparison_graph(request: HttpRequest, number: int | None = None, a: str = "", b: str = "") -> HttpResponseBase:
    """Send the differences of a comparison as a graph, with `?test=` the samples of one test."""
    sides, selection = compared(request, number, a, b)
    found, test = _selected(request, sides)
    against = f"{', '.join(side.label for side in sides[1:])} against {sides[0].label}{sides[0].origin.after_comma}"
    if test:
        picture = render_file(boxes_figure(values_by_side(sides, test), found[0].scale), f"{test}: {against}")
    else:
        picture = render_file(intervals_figure(found), f"{against}: change with its confidence interval")
    return _send(request, "graph.svg", picture, selection)


@require_safe
def series_graph(request: HttpRequest, test: str) -> HttpResponseBase:
    """Send a test over time as a graph; the parameters are those of the timeline."""
    _, found = selected_timeline(request, test)
    if found is None:
        raise Http404(f"“{test}” was not measured here. The list of tests has all names.")
    graph = timeline_graph(found, shifts(found))
    return _send(request, "graph.svg", render_file(graph.figure, graph.label))


def _selected(request: HttpRequest, sides: list[Side]) -> tuple[list[TestComparison], str]:
    """The comparisons of all tests, or of the selected one, with its name."""
    found = side_comparisons(sides, *selected_limits(request)).everything
    test = choice_in(request, "test", sorted({comparison.test for comparison in found}))
    return [comparison for comparison in found if test in {"", comparison.test}], test


def _send(request: HttpRequest, name: str, picture: str, selection: Selection | None = None) -> HttpResponseBase:
    """An image is small: its hash is its ETag, also during a run."""
    content = picture.encode()
    body = Body(
        name,
        "image/svg+xml",
        lambda start: iter([content[start:]]),
        lambda: len(content),
        hashlib.sha256(content).hexdigest()[:32],
        selection.modified if selection and selection.is_over else None,
        inline=True,
        cache=_KEPT,
    )
    response = send(request, body)
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response
