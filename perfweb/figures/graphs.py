# SPDX-License-Identifier: BSD-2-Clause
"""The graphs of a page: drawn as SVG in the page itself, and sent to Plotly on request.

Every page with graphs returns all its figures for `?graphs=json`, which static/graphs.js fetches, and one of them as an
SVG file for `?graph=ID`. Other parameters of the address keep their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.safestring import SafeString, mark_safe

from perfweb.figures import svg
from perfweb.parameters import choice_in

Figure = dict[str, Any]


# An SVG file contains its style; nothing else may load or run.
_SVG_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@dataclass(frozen=True)
class Toggle:
    """A check box that shows or hides the traces with its number."""

    number: int
    name: str
    role: str
    symbol: str

    @property
    def key(self) -> SafeString:
        """The marker of the series as a small image."""
        return mark_safe(svg.key(self.symbol))  # noqa: S308 (made of our own markers only)


@dataclass(frozen=True)
class Graph:
    """A figure with its id in the page and its text for screen readers."""

    id: str
    label: str
    figure: Figure

    @property
    def svg(self) -> SafeString:
        """The figure for the page; svg.render() escapes all text."""
        return mark_safe(svg.render(self.figure, self.label, name=self.id))  # noqa: S308

    @property
    def toggles(self) -> list[Toggle]:
        """One check box for each series; none if there is only one."""
        found: dict[int, Toggle] = {}
        for trace in self.figure["data"]:
            meta = trace["meta"]
            if "toggle" in meta:
                toggle = Toggle(meta["toggle"], trace["name"], meta["role"], trace["marker"]["symbol"])
                found.setdefault(toggle.number, toggle)
        return [found[number] for number in sorted(found)] if len(found) > 1 else []


def respond(
    request: HttpRequest, template: str, context: Mapping[str, Any], graphs: Sequence[Graph | None]
) -> HttpResponse:
    """Return the page, or its graphs if the address selects these."""
    return selected_graphs(request, graphs) or render(request, template, {**context, "has_graphs": any(graphs)})


def selected_graphs(request: HttpRequest, graphs: Sequence[Graph | None]) -> HttpResponse | None:
    """Return the graphs of a page if the address selects these, else None. Raises
    ParameterError.
    """
    drawn = {graph.id: graph for graph in graphs if graph}
    if choice_in(request, "graphs", ["json"]):
        return JsonResponse({name: graph.figure for name, graph in drawn.items()})
    if wanted := choice_in(request, "graph", drawn):
        return _svg_file(drawn[wanted])
    return None


def _svg_file(graph: Graph) -> HttpResponse:
    return HttpResponse(
        svg.render_file(graph.figure, graph.label),
        content_type="image/svg+xml",
        headers={
            "Content-Disposition": f'inline; filename="{graph.id}.svg"',
            "Content-Security-Policy": _SVG_POLICY,
        },
    )
