# SPDX-License-Identifier: BSD-2-Clause
"""The glossary's terms on pages."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from perfweb.manual.glossary import LONGEST_TERM, terms, with_definitions
from tests.factories import create_run


def linked(html: str) -> list[str]:
    return re.findall(r'aria-describedby="[^"]*">([^<]*)</a>', with_definitions(html))


def test_every_term_has_one_definition_and_is_found() -> None:
    for spelling, term in terms().items():
        assert term.definition.endswith("."), spelling
        assert len(spelling.split()) <= LONGEST_TERM
        assert linked(f"<h2>{spelling}</h2>") == [spelling]


def test_only_the_first_use_is_linked() -> None:
    assert linked("<h2>Verdict</h2><h3>a verdict, two verdicts</h3><th>Verdict</th>") == ["Verdict"]


def test_the_longest_term_wins() -> None:
    assert linked("<th>Confidence interval and confidence</th>") == ["Confidence interval", "confidence"]
    assert linked("<h3>void samples, then a sample</h3>") == ["void samples", "sample"]


@pytest.mark.parametrize(
    "html",
    [
        '<th scope="row">margin</th>',
        "<td>margin</td>",
        "<h3><a href='x'>margin</a></h3>",
        "<th><code>margin</code></th>",
        "<p>margin</p>",
        '<h2 id="margin" class="margin">x</h2>',
    ],
)
def test_names_and_attributes_are_left_alone(html: str) -> None:
    assert "term" not in with_definitions(html)


def test_a_link_has_its_definition_for_keyboard_and_screen_reader() -> None:
    html = with_definitions("<h2>Margin &amp; &lt;x&gt;</h2>")
    definition = terms()["margin"].definition
    assert '<a href="/docs/glossary/#term-margin" aria-describedby="tip-term-margin">Margin</a>' in html
    assert f'<span role="tooltip" id="tip-term-margin">{definition}</span>' in html
    assert html.endswith(" &amp; &lt;x&gt;</h2>")


@pytest.mark.django_db
def test_pages_link_their_terms(client: Client) -> None:
    run = create_run()
    for address in ("/", f"/runs/{run.pk}/", f"/runs/{run.pk}/compare/deferred..direct/"):
        page = client.get(address).content.decode()
        tips = re.findall(r'id="(tip-[^"]*)"', page)
        assert tips, address
        assert len(tips) == len(set(tips)), address
