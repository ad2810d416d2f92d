# SPDX-License-Identifier: BSD-2-Clause
"""Pictures for other sites: badges and graphs that a README or a pull request shows with <img>."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from perfweb.reports.badges import badge_of_test, badge_of_tests
from perfweb.reports.comparisons import TestComparison
from perfweb.reports.downloads import Body, send
from perfweb.reports.figures import boxes_figure, intervals_figure
from perfweb.reports.rawdata.bodies import compared_sides
from perfweb.reports.rawdata.selections import Selection
from perfweb.reports.sides import Side
from perfweb.reports.svg import render_file
from perfweb.reports.timelines import read_timeline, timeline_figure
from perfweb.reports.views.comparison import asked_limits
from perfweb.reports.views.rawdata import compared, series_asked

# Proxies of code forges keep a picture for as long as it says, and ask for it again afterwards.
_KEPT = "public, max-age=300"


@require_safe
def comparison_badge(request: HttpRequest, number: int | None = None, a: str = "", b: str = "") -> HttpResponseBase:
    """Send the verdict of a comparison as a badge, with `?test=` that of one test."""
    sides, selection = compared(request, number, a, b)
    found = _asked(request, sides)

    def draw() -> str:
        if request.GET.get("test"):
            return badge_of_test(found[0])
        others = ", ".join(side.label for side in sides[1:])
        return badge_of_tests(f"{others} vs {sides[0].label}", found)

    return _send(request, selection, "badge.svg", draw)


@require_safe
def comparison_graph(request: HttpRequest, number: int | None = None, a: str = "", b: str = "") -> HttpResponseBase:
    """Send the differences of a comparison as a graph, with `?test=` the samples of one test."""
    sides, selection = compared(request, number, a, b)
    found = _asked(request, sides)
    against = f"{', '.join(side.label for side in sides[1:])} against {sides[0].label}"

    def draw() -> str:
        test = request.GET.get("test")
        if not test:
            return render_file(intervals_figure(found), f"{against}: change with its confidence interval")
        sets = {side.label: side.sets[test].values for side in sides if test in side.sets}
        return render_file(boxes_figure(sets, found[0].scale), f"{test}: {against}")

    return _send(request, selection, "graph.svg", draw)


@require_safe
def series_graph(request: HttpRequest, test: str) -> HttpResponseBase:
    """Send a test over time as a graph; the address takes what that of the timeline takes."""
    window, wanted, selection = series_asked(request, test)

    def draw() -> str:
        found = read_timeline(test, window, wanted)
        if found is None:
            raise Http404(f"“{test}” was not measured here.")
        return render_file(timeline_figure(found), f"{test} over time")

    return _send(request, selection, "graph.svg", draw)


def _asked(request: HttpRequest, sides: list[Side]) -> list[TestComparison]:
    """The comparisons of all tests, or of the one that the address names."""
    found = compared_sides(sides, *asked_limits(request))
    test = request.GET.get("test")
    if not test:
        return found
    chosen = [comparison for comparison in found if comparison.test == test]
    if not chosen:
        there = ", ".join(sorted({comparison.test for comparison in found})) or "none"
        raise Http404(f"This comparison has no test “{test}”. It has: {there}.")
    return chosen


def _send(request: HttpRequest, selection: Selection, name: str, draw: Callable[[], str]) -> HttpResponseBase:
    """A picture is small: its hash is its ETag, also while a run works."""
    content = draw().encode()
    body = Body(
        name, "image/svg+xml", lambda start: iter([content[start:]]), lambda: len(content),
        hashlib.sha256(content).hexdigest()[:32], selection.modified if selection.is_over else None, inline=True,
    )  # fmt: skip
    response = send(request, replace(body, cache=_KEPT))
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response
