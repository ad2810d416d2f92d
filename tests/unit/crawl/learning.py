# SPDX-License-Identifier: BSD-2-Clause
"""The names of the parameters and fields of each address: read by its view, in the HTML of a form, or documented."""

from __future__ import annotations

from collections import defaultdict
from html.parser import HTMLParser
from typing import Any

import pytest
from django.http import QueryDict
from django.urls import Resolver404, resolve

from perfweb.api.v1 import document
from tests.unit.crawl.addresses import ADDRESSES, Address

_READERS = ("get", "getlist", "__getitem__", "__contains__")


class Names:
    """The known parameters and fields of each address; they grow with each request."""

    def __init__(self) -> None:
        self.known: dict[Address, set[str]] = defaultdict(set)
        self._by_route = {address.route: address for address in ADDRESSES}
        self._read: set[str] = set()
        self._documented()

    def record(self, patch: pytest.MonkeyPatch) -> None:
        """Record from now on which keys of a query or a form are read."""
        for method in _READERS:
            patch.setattr(QueryDict, method, self._noticing(getattr(QueryDict, method)))

    def learn(self, address: Address, page: bytes) -> None:
        """Store what the view of an address has just read, and the fields of the forms on its page."""
        self.known[address] |= self._read
        self._read.clear()
        for action, fields in _Forms(page.decode("utf-8", "replace"), "/" + address.route).found:
            try:
                target = self._by_route.get(resolve(action.partition("?")[0]).route)
            except Resolver404:
                continue  # to the page itself, whose address has variables here
            self.known[target or address] |= fields - {"csrfmiddlewaretoken"}

    def _noticing(self, method: Any) -> Any:
        def read(lookup: Any, key: Any, *arguments: Any, **named: Any) -> Any:
            if isinstance(key, str) and key != "csrfmiddlewaretoken":
                self._read.add(key)
            return method(lookup, key, *arguments, **named)

        return read

    def _documented(self) -> None:
        known = document()
        for path, operations in known["paths"].items():
            address = next(one for one in ADDRESSES if one.name == path)
            for operation in operations.values():
                self.known[address] |= {one["name"] for one in operation["parameters"] if one["in"] == "query"}
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    name = content["schema"]["$ref"].rpartition("/")[2]
                    self.known[address] |= set(known["components"]["schemas"][name]["properties"])


class _Forms(HTMLParser):
    """The forms of a page: the address of each, and the names of its fields."""

    def __init__(self, page: str, here: str) -> None:
        super().__init__()
        self.found: list[tuple[str, set[str]]] = []
        self._here = here
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append((given.get("action") or self._here, set()))
        elif tag in {"input", "select", "textarea", "button"} and given.get("name") and self.found:
            self.found[-1][1].add(given["name"])
