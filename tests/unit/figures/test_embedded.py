# SPDX-License-Identifier: BSD-2-Clause
"""Badges and graphs for other sites: they show the verdict, load nothing, and can be cached."""

from __future__ import annotations

import re
from html import escape
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client

from perfweb.figures.badges import badge
from perfweb.runs.models import Measurement, Run, RunState
from perfweb.verdicts.numbers import MINUS, percent
from perfweb.verdicts.run_verdicts import verdicts
from tests.factories import DEMO_TESTS, create_history

pytestmark = pytest.mark.django_db

SVG = "{http://www.w3.org/2000/svg}"


def picture(client: Client, address: str, query: dict[str, str] | None = None) -> tuple[Any, ElementTree.Element]:
    response: Any = client.get(address, query)
    assert response.status_code == 200
    assert response["Content-Type"] == "image/svg+xml"
    text = response.getvalue().decode()
    assert not re.search(r"<script|<foreignObject|<image|<a |@import|\son\w+=|href=", text)
    assert set(re.findall(r"https?://[^\s\"<]+", text)) <= {"http://www.w3.org/2000/svg"}
    return response, ElementTree.fromstring(text)  # noqa: S314 (our own output)


def title(root: ElementTree.Element) -> str:
    assert root.get("role") == "img"
    return root.findtext(f"{SVG}title", "")


def test_the_badge_of_a_test_shows_its_verdict(client: Client, run: Run) -> None:
    _, root = picture(client, f"/runs/{run.pk}/compare/deferred..direct/badge.svg", {"test": DEMO_TESTS[0]})
    ((_, (pair,)),) = verdicts([run])
    change = pair.tests[0].change
    assert change
    assert title(root) == f"tcp.rr direct vs deferred: ▲ {percent(change.percent, signed=True)} faster"
    assert [text.text for text in root.iter(f"{SVG}text")] == title(root).split(": ")
    _, other = picture(client, f"/runs/{run.pk}/compare/direct..deferred/badge.svg", {"test": DEMO_TESTS[4]})
    assert title(other).startswith(f"tcp.rr/host-router-host/ipv4 deferred vs direct: ▼ {MINUS}")


def test_the_badge_of_a_comparison_counts_verdicts(client: Client, run: Run) -> None:
    address = f"/runs/{run.pk}/compare/deferred..direct/badge.svg"
    assert title(picture(client, address)[1]) == "direct vs deferred: ✗ 1 failed, 5 faster"
    sides = {"base": f"{run.pk}/deferred", "with": f"{run.pk}/direct"}
    assert title(picture(client, "/compare/badge.svg", sides)[1]) == "direct vs deferred: ✗ 1 failed, 5 faster"
    wide = picture(client, address, {"margin": "50", "test": DEMO_TESTS[0]})[1]
    assert title(wide) == "tcp.rr direct vs deferred: = equivalent within ±50 %"


def test_graphs_name_what_they_show(client: Client, run: Run) -> None:
    address = f"/runs/{run.pk}/compare/deferred..direct/graph.svg"
    assert title(picture(client, address)[1]) == "direct against deferred: change with its confidence interval"
    _, samples = picture(client, address, {"test": DEMO_TESTS[0]})
    assert title(samples) == f"{DEMO_TESTS[0]}: direct against deferred"
    assert {"deferred", "direct", f"{DEMO_TESTS[0]}: direct against deferred"} <= {
        text.text for text in samples.iter(f"{SVG}text")
    }
    create_history(3)
    _, timeline = picture(client, f"/tests/{DEMO_TESTS[0]}/graph.svg", {"newest": "2"})
    assert title(timeline) == f"{DEMO_TESTS[0]} over time"
    assert [text.text for text in timeline.iter(f"{SVG}text")][-2:] == ["deferred", "direct"]


def test_a_picture_may_be_shown_anywhere_and_kept_for_a_while(client: Client, run: Run) -> None:
    address = f"/runs/{run.pk}/compare/deferred..direct/badge.svg"
    first, _ = picture(client, address)
    assert first["Cache-Control"] == "public, max-age=300"
    assert first["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert client.get(address, headers={"If-None-Match": first["ETag"]}).status_code == 304
    Run.objects.update(state=RunState.RUNNING)
    Measurement.objects.update(state="void", reason="the link went down")
    again, root = picture(client, address)
    assert title(root) == "direct vs deferred: … 6 not judged"
    assert again["ETag"] != first["ETag"]
    assert "Last-Modified" not in again


def test_what_is_not_there_is_reported(client: Client, run: Run) -> None:
    pair = f"/runs/{run.pk}/compare/deferred..direct"
    missing = client.get(f"{pair}/badge.svg", {"test": "no/such"})
    assert missing.status_code == 400
    assert escape(DEMO_TESTS[0]) in missing.content.decode()
    assert client.get("/compare/graph.svg").status_code == 400
    for address in (f"/runs/{run.pk}/compare/deferred..other/badge.svg", "/tests/no/such/graph.svg"):
        assert client.get(address).status_code == 404


@pytest.mark.parametrize("text", ["</text><script>alert(1)</script>", '"><x y="', "&amp;", "\0\x0b\ud800", "x" * 300])
def test_no_text_becomes_markup(text: str) -> None:
    root = ElementTree.fromstring(badge(text, text, "slower").encode("utf-8", "replace"))  # noqa: S314
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {"svg", "title", "rect", "g", "text"}


def test_the_pages_have_the_code_that_embeds_them(client: Client, run: Run) -> None:
    page = client.get(f"/runs/{run.pk}/compare/deferred..direct/").content.decode()
    address = f"http://testserver/runs/{run.pk}/compare/deferred..direct/"
    assert f"[![direct vs deferred]({address}badge.svg)]({address})" in page
    assert f"[![direct vs deferred]({address}graph.svg)]({address})" in page
    create_history(2)
    timeline = client.get(f"/tests/{DEMO_TESTS[0]}/", {"newest": "2"}).content.decode()
    address = f"http://testserver/tests/{DEMO_TESTS[0]}/"
    assert f"[![{DEMO_TESTS[0]} over time]({address}graph.svg?newest=2)]({address}?newest=2)" in timeline
