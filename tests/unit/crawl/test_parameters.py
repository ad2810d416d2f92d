# SPDX-License-Identifier: BSD-2-Clause
"""A wrong value of a query parameter of a page gets 400 with the possible values, never 200.

The parameters are those that the views read during the test; so a new parameter without a check fails here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import transaction

from tests.unit.accounts.site import Site
from tests.unit.crawl.addresses import ADDRESSES, Address
from tests.unit.crawl.asking import Answer, Application
from tests.unit.crawl.learning import Names
from tests.unit.crawl.mutations import Mutations

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[3]
STREAM = "/runs/{number}/events"
ANY_TEXT = {
    "/search/": {"q"},
    "/search/names.json": {"q"},
    "/tests/": {"q"},
    "/account/log/": {"q", "who"},
    "/account/sign-in/": {"next"},
}
"""Parameters that take any text; a `next` of another site is not followed."""
ELSEWHERE = "/account/sign-in/{key}/back/"
"""Its parameters come from an identity provider: any error there is 403, with the reason."""
WRONG = ["nonsense", "٣", "1e1", "2026-02-30", "x" * 300]
READERS = {
    "perfweb/parameters.py",
    "perfweb/api/operations.py",  # refuses names that its document does not have
    "perfweb/accounts/views.py",  # a form of Django's
    "perfweb/accounts/providers.py",
    "perfweb/reports/templatetags/reports.py",  # copies the query of a page into links
}


class Pages:
    """The pages of a site with the parameters that their views read."""

    def __init__(self, site: Site, names: Names) -> None:
        self._application = Application()
        self.names = names
        self._requests = Mutations(site, names.known, 0)
        self.requested = [one for one in ADDRESSES if not one.operations and one.name not in {STREAM, ELSEWHERE}]

    def learn(self) -> None:
        """Request every page, so that `names` has its parameters."""
        for address in self.requested:
            self.names.learn(address, self.ask(address).body)

    def ask(self, address: Address, query: str = "") -> Answer:
        request = self._requests.good(address, "GET", "admin")
        with transaction.atomic():
            joined = b"&" if b"?" in request.target else b"?"
            target = request.target + joined + query.encode() if query else request.target
            answer = self._application.ask(type(request)("GET", target, request.headers))
            transaction.set_rollback(True)
        return answer

    def parameters(self) -> Iterator[tuple[Address, str]]:
        for address in self.requested:
            if address.action and address.name != "/account/log/":
                continue  # its view reads the fields of a posted form
            free = ANY_TEXT.get(address.name, set())
            yield from ((address, name) for name in sorted(self.names.known[address] - free))


@pytest.fixture
def unread(site: Site, one_connection: None) -> Pages:
    """The pages, none of which was requested."""
    return Pages(site, Names())


@pytest.fixture
def pages(unread: Pages, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """The pages with their parameters."""
    unread.names.record(monkeypatch)
    unread.learn()
    return unread


def test_a_wrong_value_is_refused_with_what_is_possible(pages: Pages) -> None:
    checked = list(pages.parameters())
    assert {name for _, name in checked} >= {
        *("action", "base", "before", "by", "confidence", "from", "graph", "graphs", "margin", "newest", "series"),
        *("since", "test", "to", "topic", "until", "with"),
    }
    wrong = []
    for address, name in checked:
        for value in WRONG:
            answer = pages.ask(address, f"{name}={quote(value, safe='%')}")
            text = answer.body.decode()
            if answer.status != 400 or not text.strip():
                wrong.append(f"{answer.status}: {address.name}?{name}={value[:20]}")
    assert not wrong, "\n".join(wrong)


def test_a_parameter_without_a_value_and_one_that_is_not_known_change_nothing(pages: Pages) -> None:
    for address in {address for address, _ in pages.parameters()}:
        usual = pages.ask(address).status
        names = pages.names.known[address] - {"base", "with"}
        query = "&".join(["unknown=1", *(f"{name}=" for name in sorted(names))])
        assert pages.ask(address, query).status == usual, f"{address.name}?{query}"


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("/runs/{run}/compare/deferred..direct/?confidence=97", ["confidence", "97", "80, 90, 95"]),
        ("/runs/{run}/compare/deferred..direct/?margin=1_0", ["margin", "1_0", "above 0 and below 100"]),
        ("/runs/{run}/compare/deferred..direct/badge.svg?test=tcp", ["test", "tcp.rr/host-host/ipv4"]),
        ("/runs/{run}/?topic=none", ["topic", "none", "tcp"]),
        ("/runs/?before=1&before=2", ["before", "2 times"]),
        ("/tests/tcp.rr/host-host/ipv4/?by=month", ["by", "month", "commit, time, run"]),
        ("/tests/tcp.rr/host-host/ipv4/?series=demo/none/x", ["series", "demo/none/x", "Possible: "]),
        ("/tests/tcp.rr/host-host/ipv4/?from=2026-02-01&amp;&to=2026-01-01", ["is after", "earlier bound first"]),
        ("/tests/tcp.rr/host-host/ipv4/samples.csv?newest=0", ["newest", "whole number from 1 on"]),
        ("/compare/samples.csv?base={run}/none&with={run}/direct", ["base, with", "deferred, direct"]),
        ("/search/?q=a+b+c+d+e+f+g+h+i", ["q", "9 words", "8 at most"]),
        ("/account/log/?action=fly", ["fly is not one of the available choices"]),
        ("/runs/{run}/?graphs=svg", ["graphs", "Possible: json"]),
    ],
)
def test_a_refusal_names_the_parameter_and_what_is_possible(
    site: Site, unread: Pages, address: str, parts: list[str]
) -> None:
    path, _, query = address.format(run=site.run.pk).partition("?")
    found = next(one for one in ADDRESSES if one.name == "/account/log/")
    request = unread._requests.good(found, "GET", "admin")
    answer = unread._application.ask(type(request)("GET", f"{path}?{query}".encode(), request.headers))
    text = answer.body.decode()
    assert answer.status == 400
    back = [] if path == "/account/log/" else [f'href="{path}"']  # that page shows its form again
    assert not [part for part in [*parts, 'aria-label="Main"', *back] if part not in text], text


def test_only_the_checks_read_query_parameters() -> None:
    """A view that reads `request.GET` itself has no check."""
    found = {
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "perfweb").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "GET" and not _is_constant(node)
    }
    assert found == READERS


def _is_constant(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id != "request"
