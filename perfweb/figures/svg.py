# SPDX-License-Identifier: BSD-2-Clause
"""Draws a figure as SVG, for readers without JavaScript and for documents.

It implements the part of Plotly's figures (https://plotly.com/javascript/reference/) that perfweb.figures.plots uses:
points and lines with error bars, boxes with their points, lines across the plot and letters on top of it. Colours are
classes of the style sheet, so a figure inside a page follows light and dark mode; a file contains the style.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from perfweb.figures.axes import Axis

Figure = dict[str, Any]

_WIDTH = 580
_TOP, _RIGHT, _BOTTOM = 14, 12, 44
_CHARACTER = 6.6  # a generous width of one character of the tick labels, in pixels
_SHORTEST_LEFT, _LONGEST_LEFT = 48, 260
_RADIUS = 3.6
_HEAD, _LEGEND_ROW = 24, 18
_MARKERS_APART = 40
"""Pixels between the markers of a line whose points are too dense for a marker each."""

INSIDE = "inside top"
"""Plotly's `ticklabelposition` of an axis whose labels stand in the plot, above what they name."""

MOST_LINKS = 200
"""Max points of a figure on a page that link to their runs."""

# Each marker as a path relative to its centre, for a radius of one.
_MARKERS = {
    "circle": "m-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0",
    "square": "m-.9-.9h1.8v1.8h-1.8z",
    "diamond": "m0-1.25 1.25 1.25-1.25 1.25-1.25-1.25z",
    "triangle-up": "m0-1.2 1.15 2h-2.3z",
    "triangle-down": "m0 1.2 1.15-2h-2.3z",
    "triangle-left": "m-1.2 0 2-1.15v2.3z",
    "triangle-right": "m1.2 0-2-1.15v2.3z",
    "cross": "m-.4-1.1h.8v.7h.7v.8h-.7v.7h-.8v-.7h-.7v-.8h.7z",
    "star": "m0-1.4.4.9 1 .1-.8.7.3 1-.9-.6-.9.6.3-1-.8-.7 1-.1z",
    "hexagon": "m-1.1 0 .55-1h1.1l.55 1-.55 1h-1.1z",
    "hourglass": "m-1-1.1h2l-2 2.2h2z",
    "bowtie": "m-1.1-1v2l2.2-2v2z",
}

# The rules of the style sheet, for a separate file.
_STANDALONE = """<style>
svg{color-scheme:light dark;background:#fff;color:#1b1f24}
.series-0{color:#2a78b8}.series-1{color:#c2570c}.series-2{color:#2e7d5b}.series-3{color:#8a4fa8}
.series-4{color:#8c6d00}.series-5{color:#b03a6b}.faster{color:#116329}.slower{color:#b3261e}
.muted,.equivalent,.identical,.not-judged{color:#59636e}.not-enough-data{color:#7a4d00}
text{font:12px system-ui,sans-serif;fill:#1b1f24}.grid{stroke:#dde1e6}.zero{stroke:#59636e}
.across{stroke:#59636e;stroke-dasharray:3 3}
.over{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
@media(prefers-color-scheme:dark){svg{background:#14171a;color:#e3e6ea}text{fill:#e3e6ea}.grid{stroke:#343a41}
.over{stroke:#14171a}.series-0{color:#63b0ee}.series-1{color:#f59152}.series-2{color:#63c39a}
.series-3{color:#c792e3}.series-4{color:#d8b74a}.series-5{color:#ee84ae}.faster{color:#6fd08c}.slower{color:#ff8f85}}
</style>"""


def key(symbol: str) -> str:
    """Return the marker alone, as the image in front of a series' name."""
    shape, hollow = _MARKERS[symbol.removesuffix("-open")], symbol.endswith("-open")
    paint = ' fill="none" stroke="currentColor" stroke-width=".4"' if hollow else ""
    size = 'width="11" height="11" viewBox="-1.6 -1.6 3.2 3.2"'
    return f'<svg class="key" {size} aria-hidden="true"><path d="M0 0{shape}"{paint}/></svg>'


def escape(text: str) -> str:
    """Return a text as XML, without the characters that XML 1.0 forbids even as references."""
    return html.escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))


_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_file(figure: Figure, title: str) -> str:
    """Return the figure as a self-contained file: with its title, its colours and the names of its series."""
    picture = render(figure, title)
    width, height = (int(float(size)) for size in re.findall(r'viewBox="0 0 (\d+) (\d+)"', picture)[0])
    legend, below = _legend(figure["data"], width)
    inside = picture.replace("<svg ", f'<svg y="{_HEAD}" height="{height}" ', 1)
    inside = inside.replace(f' role="img"><title>{escape(title)}</title>', ">", 1)  # the file as a whole has them
    whole = _HEAD + height + below
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{whole}" viewBox="0 0 {width} {whole}" '
        f'role="img"><title>{escape(title)}</title>{_STANDALONE}<text x="{_HEAD / 2:.0f}" y="{_HEAD - 8}">'
        f'{escape(title)}</text>{inside}<g transform="translate(0 {_HEAD + height})">{legend}</g></svg>'
    )


def _legend(traces: Iterable[Figure], width: int) -> tuple[str, int]:
    """The legend: markers of several series with their names, in as many rows as needed, and its height."""
    # The names of boxes stand below them.
    named = [trace for trace in traces if "toggle" in trace["meta"] and trace["type"] != "box"]
    series = {trace["meta"]["toggle"]: trace for trace in reversed(named)}
    if len(series) < 2:
        return "", 0
    parts, x, row = [], float(_HEAD), 0
    for _, trace in sorted(series.items()):
        space = len(trace["name"]) * _CHARACTER + 34
        if x + space > width and x > _HEAD:
            x, row = float(_HEAD), row + 1
        y = _LEGEND_ROW * row + 10
        shape = _MARKERS[trace["marker"]["symbol"].removesuffix("-open")]
        parts.append(
            f'<g class="{trace["meta"]["role"]}"><path transform="translate({x:.0f} {y - 4}) scale({_RADIUS})" '
            f'd="M0 0{shape}" fill="currentColor"/></g><text x="{x + 9:.0f}" y="{y}">{escape(trace["name"])}</text> '
        )
        x += space
    return "".join(parts), _LEGEND_ROW * (row + 1) + 6


def render(figure: Figure, title: str, *, name: str = "") -> str:
    """Return the figure as an SVG element (https://www.w3.org/TR/SVG2/); `title` is its text for screen readers.

    Figures of one page have different ids, which their markers use. Points with an address are links, if they are few;
    a table has the same links.
    """
    layout, traces = figure["layout"], figure["data"]
    width, height = int(layout.get("meta", {}).get("width", _WIDTH)), int(layout.get("height", 300))
    right = width - _RIGHT
    # The range includes a line across the plot, even if no point is beyond it.
    lines = {letter: _lines(layout, letter) for letter in ("x", "y")}
    # Labels above the plot take as many rows as needed.
    top = _TOP + max((note.get("yshift", 0) for note in layout.get("annotations", [])), default=0)
    y_axis = Axis.of(layout.get("yaxis", {}), _values(traces, "y") + lines["y"], height - _BOTTOM, top)
    inside = layout.get("yaxis", {}).get("ticklabelposition") == INSIDE
    labels = max((len(text) for _, text in y_axis.ticks), default=0)
    left = _RIGHT if inside else min(max(labels * _CHARACTER + 26, _SHORTEST_LEFT), _LONGEST_LEFT)
    x_axis = Axis.of(layout.get("xaxis", {}), _values(traces, "x") + lines["x"], left, right)
    linked = name != "" and 0 < sum(len(trace.get("customdata", [])) for trace in traces) <= MOST_LINKS
    # An element inside an image cannot be a link.
    named = f'xmlns:xlink="http://www.w3.org/1999/xlink" role="group" aria-label="{escape(title)}"'
    role = named if linked else 'role="img"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" viewBox="0 0 {width} {height}" {role}>',
        "" if linked else f"<title>{escape(title)}</title>",
        *_frame(x_axis, y_axis, height),
        *(_across(shape, x_axis, y_axis) for shape in layout.get("shapes", [])),
        *_labels(y_axis, left, inside=inside),
        *(_letter(note, x_axis, y_axis) for note in layout.get("annotations", [])),
        *(_trace(trace, f"m{crc32(name.encode()):x}-{number}", x_axis, y_axis) for number, trace in enumerate(traces)),
        *(_links(trace, x_axis, y_axis) for trace in traces if linked),
        "</svg>",
    ]
    return "".join(parts)


def _lines(layout: Figure, name: str) -> list[float]:
    """Positions of lines that cross an axis at a right angle."""
    along = {"x": "yref", "y": "xref"}[name]
    return [shape[f"{name}0"] for shape in layout.get("shapes", []) if shape.get(along) == "paper"]


def _values(traces: Iterable[Figure], name: str) -> list[Any]:
    """All positions of a figure on one axis, ends of error bars included."""
    found: list[Any] = []
    for trace in traces:
        values: list[Any] = trace.get(name, [])
        found += values
        if error := trace.get(f"error_{name}"):
            found += [end for pair in _error_ends(values, error) for end in pair]
        if name == "x" and trace["type"] == "box":
            found.append(trace["name"])
    return found


def _error_ends(values: Iterable[float], error: Figure) -> list[tuple[float, float]]:
    """Return the lower and the upper end of each error bar."""
    below = error["arrayminus"] if "arrayminus" in error else error["array"]
    widths = zip(values, below, error["array"], strict=True)
    return [(value - minus, value + plus) for value, minus, plus in widths]


def _labels(y_axis: Axis, left: float, *, inside: bool) -> list[str]:
    """Tick labels of the y axis; those inside the plot cover the lines across it, so that they can be read."""
    look = 'class="over" text-anchor="start"' if inside else 'text-anchor="end"'
    x, below = (left + 2, -9) if inside else (left - 6, 4)
    return [f'<text x="{x:.0f}" y="{place + below:.1f}" {look}>{escape(text)}</text> ' for place, text in y_axis.ticks]


def _frame(x_axis: Axis, y_axis: Axis, height: int) -> list[str]:
    """Grid, titles of both axes, and tick labels of the x axis; blanks keep the texts apart in a browser that shows
    nothing else.
    """
    left, right, bottom = x_axis.start, x_axis.end, height - _BOTTOM
    parts = [f'<path class="grid" d="M{left:.0f} {place:.1f}H{right}"/>' for place, _ in y_axis.ticks]
    for place, text in x_axis.ticks:
        parts.append(f'<path class="grid" d="M{place:.1f} {bottom}v5"/>')
        parts.append(f'<text x="{place:.1f}" y="{bottom + 17}" text-anchor="middle">{escape(text)}</text> ')
    if (zero := x_axis.zero) is not None:
        parts.append(f'<path class="zero" d="M{zero:.1f} {y_axis.end}V{bottom}"/>')
    parts.append(f'<path class="grid" d="M{left:.0f} {bottom}H{right}"/>')
    parts.append(
        f'<text x="{(left + right) / 2:.0f}" y="{height - 8}" text-anchor="middle">{escape(x_axis.title)}</text> '
    )
    middle = (y_axis.end + bottom) / 2
    if y_axis.title:
        turned = f'transform="rotate(-90 12 {middle:.0f})"'
        parts.append(f'<text x="12" y="{middle:.0f}" text-anchor="middle" {turned}>{escape(y_axis.title)}</text> ')
    return parts


def _across(shape: Figure, x_axis: Axis, y_axis: Axis) -> str:
    """A line across the whole plot, vertical or horizontal."""
    if shape.get("yref") == "paper":
        return f'<path class="across" d="M{x_axis.place(shape["x0"]):.1f} {y_axis.end}V{y_axis.start}"/>'
    return f'<path class="across" d="M{x_axis.start:.0f} {y_axis.place(shape["y0"]):.1f}H{x_axis.end:.0f}"/>'


def _letter(note: Figure, x_axis: Axis, y_axis: Axis) -> str:
    x, y = x_axis.place(note["x"]), y_axis.end - 3 - note.get("yshift", 0)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(note["text"])}</text> '


def _trace(trace: Figure, marker: str, x_axis: Axis, y_axis: Axis) -> str:
    """One series; `meta.toggle` is the number of the check box that hides it, `marker` the id of its marker."""
    draw = _box if trace["type"] == "box" else _scatter
    parts = draw(trace, marker, x_axis, y_axis)
    return f'<g class="{trace["meta"]["role"]}{_toggle(trace)}">{"".join(parts)}</g>'


def _toggle(trace: Figure) -> str:
    return f" trace-{trace['meta']['toggle']}" if "toggle" in trace["meta"] else ""


def _links(trace: Figure, x_axis: Axis, y_axis: Axis) -> str:
    """A transparent target around each point with an address, to click on."""
    if "customdata" not in trace:
        return ""
    parts = []
    places = zip(x_axis.places(trace["x"]), y_axis.places(trace["y"]), strict=True)
    for (x, y), address, text, value in zip(places, trace["customdata"], trace["text"], trace["y"], strict=True):
        words = escape(trace["hovertemplate"].replace("%{text}", text).replace("%{y}", f"{value:g}"))
        parts.append(
            f'<a href="{escape(address)}" tabindex="-1" aria-label="{words}" xlink:title="{words}">'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 * _RADIUS}" fill="transparent"/></a>'
        )
    return f'<g class="links{_toggle(trace)}">{"".join(parts)}</g>'


def _scatter(trace: Figure, marker: str, x_axis: Axis, y_axis: Axis) -> list[str]:
    places = list(zip(x_axis.places(trace["x"]), y_axis.places(trace["y"]), strict=True))
    parts = []
    if error := trace.get("error_x"):
        ends = _error_ends(trace["x"], error)
        bars = "".join(
            f"M{low:.1f} {y - 4:.1f}v8m0-4H{high:.1f}m0-4v8"
            for (low, high), (_, y) in zip((x_axis.places(pair) for pair in ends), places, strict=True)
        )
        parts.append(f'<path d="{bars}" fill="none" stroke="currentColor" stroke-width="1.5"/>')
    stroke = _stroke(trace.get("line", {})) if "lines" in trace["mode"] else ""
    if "markers" in trace["mode"]:
        step = _marked_every(x_axis, len(places)) if stroke else 1
        line, stroke = ([_path(places, stroke)], "") if step > 1 else ([], stroke)
        return [*parts, *line, _points(places[::step], trace["marker"]["symbol"], marker, stroke)]
    return [*parts, _path(places, stroke)]


def _marked_every(x_axis: Axis, points: int) -> int:
    """The interval of a line's markers: one for each point, or fewer if they would overlap, but enough to distinguish
    the series. A browser takes far longer for thousands of markers than for their line.
    """
    apart = abs(x_axis.end - x_axis.start) / max(1, points)
    return 1 if apart >= _RADIUS else math.ceil(_MARKERS_APART / apart)


def _stroke(line: Figure) -> str:
    dashes = ' stroke-dasharray="5 3"' if line.get("dash") else ""
    return f' stroke="currentColor" stroke-width="{line.get("width", 1.5)}"{dashes}'


def _points(places: Sequence[tuple[float, float]], symbol: str, marker: str, stroke: str = "") -> str:
    """The marker once, and a path along which the browser repeats it, because a page has thousands of points."""
    shape, hollow = _MARKERS[symbol.removesuffix("-open")], symbol.endswith("-open")
    paint = 'fill="none" stroke="currentColor" stroke-width=".35"' if hollow else 'fill="currentColor"'
    ends = "".join(f' marker-{end}="url(#{marker})"' for end in ("start", "mid", "end"))
    size = f'markerUnits="userSpaceOnUse" markerWidth="{4 * _RADIUS}" markerHeight="{4 * _RADIUS}"'
    return (
        f'<marker id="{marker}" viewBox="-2 -2 4 4" {size}><path d="M0 0{shape}" {paint}/></marker>'
        f"{_path(places, stroke + ends)}"
    )


def _path(places: Sequence[tuple[float, float]], look: str) -> str:
    steps = " ".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return f'<path d="M{steps}" fill="none"{look}/>' if places else ""


def _box(trace: Figure, marker: str, x_axis: Axis, y_axis: Axis) -> list[str]:
    """Quartiles with the median, whiskers to the extremes, and every sample beside them."""
    values = np.asarray(trace["y"], dtype=float)
    low, first, middle, third, high = y_axis.places(np.quantile(values, [0, 0.25, 0.5, 0.75, 1.0]).tolist())
    x = x_axis.place(trace["name"])
    box = f"M{x:.1f} {low:.1f}V{first:.1f}M{x:.1f} {third:.1f}V{high:.1f}"
    box += f"M{x - 14:.1f} {first:.1f}h28V{third:.1f}h-28zM{x - 14:.1f} {middle:.1f}h28"
    # The points spread over a strip in a fixed pattern (the golden ratio), so that a page looks the same each time.
    strip = [(x - 34 + 14 * ((index * 0.618034) % 1), y) for index, y in enumerate(y_axis.places(trace["y"]))]
    line = f'<path d="{box}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    return [line, _points(strip, trace["marker"]["symbol"], marker)]
