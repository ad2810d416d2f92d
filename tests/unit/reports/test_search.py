# SPDX-License-Identifier: BSD-2-Clause
"""Names that the search field offers while a user types."""

from __future__ import annotations

import pytest
from django.test import Client

from perfweb.reports.search import MOST_HITS
from tests.factories import create_testbed

pytestmark = pytest.mark.django_db


def offered(client: Client, text: str) -> dict[str, str]:
    names: dict[str, str] = client.get("/search/names.json", {"q": text}).json()
    return names


def test_names_of_each_kind_in_any_case(client: Client) -> None:
    create_testbed("dispatcher")
    names = offered(client, " DISPATCH ")
    assert names["dispatcher"] == "/testbeds/dispatcher/"
    assert any(address.startswith("/docs/") for address in names.values())
    assert offered(client, "udp.rr/host-host/ipv4") == {"udp.rr/host-host/ipv4": "/tests/udp.rr/host-host/ipv4/"}


@pytest.mark.parametrize("text", ["rr/host-host/ipv4 udp", "hypervisor"])
def test_a_text_between_two_names_or_of_a_section_is_no_name(client: Client, text: str) -> None:
    assert client.get("/search/", {"q": text}).status_code == 200
    assert offered(client, text) == {}


def test_the_text_of_a_section_is_found_by_the_search_itself(client: Client) -> None:
    assert "/docs/" in client.get("/search/", {"q": "hypervisor"}).content.decode().partition("<main")[2]


@pytest.mark.parametrize("text", ["", "ud", "  ud  "])
def test_a_text_that_is_too_short_has_none(client: Client, text: str) -> None:
    assert offered(client, text) == {}


def test_there_are_few(client: Client) -> None:
    assert len(offered(client, "tcp")) == MOST_HITS
