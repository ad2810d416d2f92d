# SPDX-License-Identifier: BSD-2-Clause
"""Requests with one or two malformed parts each, for every part of every address."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote_from_bytes, urlencode

from tests.unit.accounts.site import ANYBODY, ROLES, Site
from tests.unit.crawl import values
from tests.unit.crawl.addresses import Address
from tests.unit.crawl.asking import Headers, Request

Spot = tuple[str, str]
"""A part of a request: its kind (path, query, field, header, body, method, names) and its name."""

WHOLE = [
    ("body", ""),
    ("method", ""),
    ("names", ""),
    ("type", ""),
    *(("header", name.decode()) for name in values.HEADERS),
]
UNQUOTED = "/%{}[]|\\^`\"<>:;=&+,'()*!$~@.?#"


@dataclass
class Draft:
    """A request that is good, until parts of it are replaced."""

    address: Address
    method: str
    path: dict[str, bytes]
    query: list[tuple[bytes, bytes]]
    fields: dict[str, Any]
    headers: Headers
    body: bytes | None = None
    files: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def is_json(self) -> bool:
        return bool(self.address.operations)

    def written(self, safe: str) -> Request:
        """The request; `safe` are characters of path and query that are not percent-encoded."""
        path = self.address.name.format(**{name: quote_from_bytes(value, safe) for name, value in self.path.items()})
        query = "&".join("=".join(quote_from_bytes(part, safe) for part in pair) for pair in self.query)
        target = path + ("?" + query if query else "")
        headers, body = list(self.headers), b""
        if self.method == "POST":
            kind, body = self._content()
            if b"content-type" not in dict(headers):
                headers.append((b"content-type", kind))
        if b"content-length" not in dict(headers):
            headers.append((b"content-length", str(len(body)).encode()))
        return Request(self.method, target.encode("ascii"), headers, body)

    def _content(self) -> tuple[bytes, bytes]:
        if self.is_json:
            return b"application/json", self.body if self.body is not None else _json(self.fields)
        if self.body is not None:
            return b"multipart/form-data; boundary=x", self.body
        return b"application/x-www-form-urlencoded", urlencode(self.fields).encode()


@dataclass(frozen=True)
class _Written:
    """A part of a JSON body that is not written by json.dumps."""

    text: bytes


def _json(fields: dict[str, Any]) -> bytes:
    pairs = (
        json.dumps(name).encode() + b": " + (value.text if isinstance(value, _Written) else json.dumps(value).encode())
        for name, value in fields.items()
    )
    return b"{" + b", ".join(pairs) + b"}"


class Mutations:
    """All spots of all addresses, and requests that are malformed there, always the same for a seed.

    `names` are those of the parameters and form fields of each address, learned from what its view has read, the HTML
    of its forms, and the OpenAPI document.
    """

    def __init__(self, site: Site, names: dict[Address, set[str]], seed: int) -> None:
        self._site, self._names = site, names
        self._random = random.Random(seed)

    def spots(self, address: Address) -> Iterator[tuple[str, Spot]]:
        """Each part of the requests that an address takes, with the method."""
        known = sorted(self._names.get(address, set()))
        methods = ["GET"] if not address.action else ["GET", "POST"]
        for method in methods:
            yield from ((method, ("path", name)) for name in address.variables)
            yield from ((method, ("query", name)) for name in known)
            if method == "POST":
                yield from ((method, ("field", name)) for name in known)
                yield from ((method, ("body", "")) for _ in range(3))
            yield from ((method, spot) for spot in self._random.sample(WHOLE, 3))

    def endless(self, addresses: list[Address]) -> Iterator[tuple[Address, str, Spot]]:
        """All spots of all addresses, each time in another order, so that the first few are of all kinds."""
        while True:
            found = [(address, *spot) for address in addresses for spot in self.spots(address)]
            yield from self._random.sample(found, len(found))

    def request(self, address: Address, method: str, spot: Spot) -> tuple[str, Request]:
        """A person, and a request of theirs that is malformed in a spot, and now and then in a second one."""
        person = self._random.choice([ANYBODY, "admin", "admin", *ROLES])
        draft = self._draft(address, method, person)
        self._spoil(draft, spot)
        if self._random.random() < 0.25:
            self._spoil(draft, self._random.choice([spot for _, spot in self.spots(address)]))
        return person, draft.written(
            UNQUOTED if self._random.random() < 0.2 else "/" if self._random.random() < 0.3 else ""
        )

    def good(self, address: Address, method: str, person: str) -> Request:
        """The request as it should be."""
        return self._draft(address, method, person).written("/")

    def _draft(self, address: Address, method: str, person: str) -> Draft:
        site, given = self._site, self._site.values(address.name)
        query = parse_qsl(site.query(address.name).removeprefix("?"))
        headers = [(b"host", b"testserver")]
        if person != ANYBODY:
            token, session = site.tokens[person].encode(), site.sessions[person].encode()
            headers.append(
                (b"authorization", b"Bearer " + token) if address.operations else (b"cookie", b"sessionid=" + session)
            )
        fields = dict(site.sent(address.name)) if method == "POST" else {}
        if method == "POST" and not address.operations:
            cookies = dict(headers).get(b"cookie", b"")
            headers = [pair for pair in headers if pair[0] != b"cookie"]
            headers.append((b"cookie", b"; ".join(filter(None, [cookies, b"csrftoken=" + CSRF]))))
            fields["csrfmiddlewaretoken"] = CSRF.decode()
        path = {name: str(given[name]).encode() for name in address.variables}
        return Draft(address, method, path, [(a.encode(), b.encode()) for a, b in query], fields, headers)

    def _spoil(self, draft: Draft, spot: Spot) -> None:
        kind, name = spot
        choose = self._random.choice
        if kind == "path":
            draft.path[name] = choose(values.WORDS)
        elif kind == "query":
            self._spoil_query(draft, name.encode())
        elif kind == "field":
            draft.fields[name] = _Written(choose(values.JSON_VALUES)) if draft.is_json else self._field()
        elif kind == "body":
            draft.body = choose(values.JSON_BODIES if draft.is_json else values.MULTIPARTS)
        elif kind == "names":
            draft.query.append((choose(values.WORDS)[:2000], choose(values.WORDS)[:2000]))
        elif kind == "method":
            draft.method = choose(values.METHODS)
        elif kind == "type":
            draft.headers.append((b"content-type", choose(values.CONTENT_TYPES)))
        else:
            value = choose(values.HEADERS[name.encode()])
            draft.headers = [pair for pair in draft.headers if pair[0] != name.encode()] + [(name.encode(), value)]

    def _spoil_query(self, draft: Draft, name: bytes) -> None:
        value = self._random.choice(values.WORDS)
        style = self._random.random()
        if style < 0.8:
            draft.query = [pair for pair in draft.query if pair[0] != name] + [(name, value)]
        elif style < 0.9:
            draft.query += [(name, self._random.choice(values.WORDS)[:2000]) for _ in range(3)]
        else:
            draft.query.append((name + self._random.choice([b"[]", b"[0]", b".a", b"__gt", b"\0"]), value))

    def _field(self) -> bytes | list[bytes]:
        return self._random.choice(values.WORDS)


CSRF = b"x" * 32
