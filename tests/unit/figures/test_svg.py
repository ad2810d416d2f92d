# SPDX-License-Identifier: BSD-2-Clause
"""Images of figures: well-formed, complete, and inert."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perfweb.figures.axes import date_ticks, nice_ticks
from perfweb.figures.badges import badge
from perfweb.figures.plots import (
    boxes_figure,
    distributions_figure,
    lettered,
    runs_figure,
    series_look,
    series_style,
    thinned,
)
from perfweb.figures.svg import MOST_LINKS, key, render, render_file
from perfweb.verdicts.numbers import scale_for

SETS = {"deferred": [1.0, 2.0, 2.5, 9.0], "direct <&>": [3.0, 3.0, 3.5]}
SVG = "{http://www.w3.org/2000/svg}"
numbers = st.floats(-1e12, 1e12)


def parsed(text: str) -> ElementTree.Element:
    """The image as a tree; a parser error fails the test."""
    return ElementTree.fromstring(text)  # noqa: S314 (our own output)


def test_every_sample_of_a_box_is_a_point() -> None:
    picture = parsed(render(boxes_figure(SETS, scale_for("bits/s", 9)), "boxes"))
    paths = [path for path in picture.iter(f"{SVG}path") if path.get("marker-mid")]
    assert [len(path.get("d", "").split()) // 2 for path in paths] == [4, 3]


def test_markers_of_two_pictures_of_a_page_have_different_names() -> None:
    figure = boxes_figure(SETS, scale_for("bits/s", 9))
    names = re.findall(r'<marker id="([^"]+)"', render(figure, "x", name="one") + render(figure, "x", name="two"))
    assert len(names) == len(set(names)) == 4


def test_texts_cannot_become_markup() -> None:
    text = render(boxes_figure({"</svg><script>": [1.0, 2.0]}, scale_for("</text>", 1)), "</title><script>")
    assert "<script" not in text
    parsed(text)


def test_only_a_standalone_picture_brings_its_colours() -> None:
    figure = distributions_figure(SETS, scale_for("bits/s", 9))
    assert "<style>" not in render(figure, "x")
    assert "prefers-color-scheme:dark" in render_file(figure, "x")


def test_series_have_markers_of_their_own() -> None:
    styles = [series_style(number) for number in range(12)]
    assert len({symbol for _, symbol in styles}) == 12
    for _, symbol in styles:
        parsed(key(symbol))


def test_a_dense_line_keeps_its_points_and_has_fewer_markers() -> None:
    """Thousands of markers would overlap, and a browser takes half a second for them."""

    def drawn(points: int) -> tuple[int, int]:
        trace = {**series_look(0, "deferred"), "type": "scatter", "mode": "lines+markers"}
        trace |= {"x": list(range(points)), "y": [float(place % 7) for place in range(points)]}
        picture = parsed(render({"data": [trace], "layout": {}}, "a line"))
        paths = [
            path for path in picture.iter(f"{SVG}path") if "class" not in path.attrib and path.get("fill") == "none"
        ]
        count = {path.get("marker-mid", ""): len(path.get("d", "").split()) // 2 for path in paths}
        return max(count.values()), max(marked for marker, marked in count.items() if marker)

    assert drawn(20) == (20, 20)
    line, marked = drawn(1000)
    assert line == 1000
    assert 5 < marked < 50


def test_points_lead_to_their_runs_in_a_page_where_they_are_few() -> None:
    figure = runs_figure({"direct": {run: run / 7 for run in range(1, 4)}}, [1, 2, 3], "%", {})
    links = [link.attrib for link in parsed(render(figure, "x", name="drift")).iter(f"{SVG}a")]
    assert next((link["href"], link["aria-label"]) for link in links) == ("/runs/1/", "run 1: 0.1429 %")
    assert (len(links), {link["tabindex"] for link in links}) == (3, {"-1"})
    assert "<a " not in render_file(figure, "x")
    many = list(range(MOST_LINKS + 1))
    assert "<a " not in render(runs_figure({"direct": dict.fromkeys(many, 1.0)}, many, "%", {}), "x", name="drift")


def test_labels_that_are_close_together_stand_one_above_the_other() -> None:
    apart = lettered({0.0: "A", 50.0: "B", 51.0: "C 12", 51.2: "D"}, span=100.0)
    assert [note.get("yshift", 0) for note in apart["annotations"]] == [0, 0, 13, 26]
    figure = {"data": [], "layout": {"height": 200, "xaxis": {"range": [0, 100]}, **apart}}
    placed = {text.text: float(text.get("y", 0)) for text in parsed(render(figure, "x")).iter(f"{SVG}text")}
    assert 0 < placed["D"] < placed["C 12"] < placed["B"] == placed["A"]
    assert "yshift" not in str(lettered({0.0: "A", 0.1: "B"}))
    narrow = lettered({10.0: "alert 1", 24.0: "alert 2"}, span=100.0)  # 50 of the 300 pixels of a telephone each
    assert [note.get("yshift", 0) for note in narrow["annotations"]] == [0, 13]


@example({"": [1.1125369292536007e-308]})
@example({"": [1e12, 1e12 + 1e-4]})
@given(st.dictionaries(st.text(max_size=20), st.lists(numbers, min_size=1, max_size=30), min_size=1, max_size=7))
def test_any_samples_can_be_drawn(sets: dict[str, list[float]]) -> None:
    # Without n: "nan" is a possible name of a variant.
    sets = {re.sub(r"[^\x20-\ud7ff]|n", "?", name): values for name, values in sets.items()}
    for figure in (boxes_figure(sets, scale_for("us", 1)), distributions_figure(sets, scale_for("us", 1))):
        text = render(figure, "any")
        parsed(text)
        assert "nan" not in text
        assert "inf" not in re.sub(r"<title>.*?</title>|<text[^>]*>.*?</text>", "", text)


@given(numbers, st.floats(1e-6, 1e12))
def test_ticks_are_few_and_inside(low: float, span: float) -> None:
    high = low + span
    ticks = nice_ticks(low, high) if high > low + 1e-9 * abs(low) else []
    assert len(ticks) <= 13
    assert all(low - 1e-6 * span <= place <= high + 1e-6 * span for place, _ in ticks)


@pytest.mark.parametrize(
    ("days", "form"), [(0.01, r"\d\d-\d\d \d\d:\d\d"), (40, r"\d{4}-\d\d-\d\d"), (4000, r"\d{4}-\d\d-\d\d")]
)
def test_ticks_of_time_are_dates_or_hours(days: float, form: str) -> None:
    ticks = date_ticks(1.7e12, 1.7e12 + days * 86400e3)
    assert 1 <= len(ticks) <= 7
    assert all(re.fullmatch(form, text) for _, text in ticks)


@given(st.lists(numbers, max_size=400), st.integers(2, 100))
def test_what_is_thinned_keeps_the_extremes(values: list[float], most: int) -> None:
    kept = thinned(values, most)
    assert kept == sorted(set(kept))
    assert len(kept) <= max(most, 2)
    if values:
        assert max(values) in {values[place] for place in kept}
        assert min(values) in {values[place] for place in kept}


def test_a_file_names_its_series_and_needs_nothing_else() -> None:
    text = render_file(
        distributions_figure({f"variant {number}": [1.0, 2.0] for number in range(9)}, scale_for("us", 1)), "x y"
    )
    texts = [element.text for element in parsed(text).iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "x y"
    assert texts[-9:] == [f"variant {number}" for number in range(9)]
    assert "<script" not in text
    assert re.findall(r"https?://[^\s\"<]+", text) == ["http://www.w3.org/2000/svg"] * text.count("xmlns=")


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_name_gives_a_picture_that_can_be_read(name: str, title: str) -> None:
    name, title = (text.encode("utf-8", "replace").decode() for text in (name, title))
    parsed(render_file(distributions_figure({name: [1.0, 2.0], "other": [3.0]}, scale_for("us", 1)), title))
    parsed(badge("\0" + name, title, "faster"))
