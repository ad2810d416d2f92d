# SPDX-License-Identifier: BSD-2-Clause
"""The site's search finds sections of documents."""

from __future__ import annotations

import pytest
from django.test import Client

from perfweb.manual.search import sections


def test_a_section_has_all_words_in_any_case() -> None:
    found = sections(["VOID", "sample", "hypervisor"])
    assert found
    assert all("#" in one.address for one in found)


def test_a_word_in_the_heading_comes_first() -> None:
    first = sections(["sentinel"])[0]
    assert "entinel" in first.title


@pytest.mark.django_db
def test_the_search_page_leads_to_a_section(client: Client) -> None:
    page = client.get("/search/?q=anytime-valid").content.decode()
    assert "Documentation" in page
    assert 'href="/docs/explanation/statistics/#' in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wrong", "right"), [("dispach", "dispatch"), ("Dispach deffered", "dispatch deferred"), ("sentinal", "sentinel")]
)
def test_a_misspelt_word_gets_a_suggestion(client: Client, wrong: str, right: str) -> None:
    found = client.get("/search/", {"q": wrong}).content.decode()
    assert f'Did you mean <a href="?q={right.replace(" ", "%20")}">{right}</a>?' in found
    assert "<h2" in client.get("/search/", {"q": right}).content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("words", ["xqzwvk", "dispatch", "x" * 200, "ab"])
def test_no_suggestion_without_results(client: Client, words: str) -> None:
    assert "Did you mean" not in client.get("/search/", {"q": words}).content.decode()
