# SPDX-License-Identifier: BSD-2-Clause
"""Requests with one or two malformed parts each, for every part of every address."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote_from_bytes, urlencode

from tests.unit.accounts.site import ANONYMOUS, ROLES, Site
from tests.unit.crawl import shapes, values
from tests.unit.crawl.addresses import Address
from tests.unit.crawl.asking import Headers, Received, Request
from tests.unit.crawl.deliveries import WEBHOOK, Deliveries

Spot = tuple[str, str]
"""A part of a request: its kind (a key of Mutations.SPOILERS) and its name."""

WHOLE = [
    ("body", ""),
    ("method", ""),
    ("names", ""),
    ("type", ""),
    ("length", ""),
    ("cookies", ""),
    *(("header", name.decode()) for name in values.HEADERS),
    *(("header twice", name.decode()) for name in values.HEADERS),
]
OWNED = {"/account/unlink/{key}/", "/account/tokens/{key}/revoke/"}
"""Actions of an author only; administrators may do everything else."""
MORE_FIELDS = {"/api/v1/alerts/{number}/say": {"state": "acknowledged", "text": "seen"}}
"""Valid fields besides those of Site.sent()."""
UNQUOTED = "/%{}[]|\\^`\"<>:;=&+,'()*!$~@.?#"


@dataclass
class Draft:
    """A valid request, until parts of it are replaced."""

    address: Address
    method: str
    path: dict[str, bytes]
    query: list[tuple[bytes, bytes]]
    fields: dict[str, Any]
    headers: Headers
    body: bytes | None = None
    kind: bytes = b"multipart/form-data; boundary=x"
    """The content of a body that is not made of the fields."""
    received: Received = Received.WHOLE

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
        return Request(self.method, target.encode("ascii"), headers, body, self.received)

    def _content(self) -> tuple[bytes, bytes]:
        if self.is_json:
            return b"application/json", self.body if self.body is not None else shapes.write(self.fields)
        if self.body is not None:
            return self.kind, self.body
        return b"application/x-www-form-urlencoded", urlencode(self.fields).encode()


def permitted(address: Address) -> str:
    """A user with the permission for an address."""
    return "author" if address.name in OWNED else "admin"


class Mutations:
    """All spots of all addresses, and requests that are malformed there, always the same for a seed.

    `names` are those of the parameters and form fields of each address, learned from its view's reads, the HTML of its
    forms, and the OpenAPI document.
    """

    def __init__(self, site: Site, names: dict[Address, set[str]], seed: int) -> None:
        self._site, self._names = site, names
        self._random = random.Random(seed)
        self._deliveries = Deliveries(site)

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
                yield from ((method, ("shape", "")) for _ in range(3))
                yield from ((method, ("delivery", "")) for _ in range(12) if address.name == WEBHOOK)
            yield from ((method, spot) for spot in self._random.sample(WHOLE, 3))

    def endless(self, addresses: list[Address]) -> Iterator[tuple[Address, str, Spot]]:
        """All spots of all addresses, each time in another order, so that the first few are of all kinds."""
        while True:
            found = [(address, *spot) for address in addresses for spot in self.spots(address)]
            yield from self._random.sample(found, len(found))

    def request(self, address: Address, method: str, spot: Spot) -> tuple[str, Request]:
        """A user, and a request by that user that is malformed in a spot, and now and then in a second one.

        It is more often a user whom no check of permissions refuses.
        """
        person = permitted(address) if self._random.random() < 0.5 else self._random.choice([ANONYMOUS, *ROLES])
        draft = self._draft(address, method, person)
        self._spoil(draft, spot)
        if self._random.random() < 0.25:
            self._spoil(draft, self._random.choice([spot for _, spot in self.spots(address)]))
        return person, draft.written(
            UNQUOTED if self._random.random() < 0.2 else "/" if self._random.random() < 0.3 else ""
        )

    def good(self, address: Address, method: str, person: str) -> Request:
        """The request without faults."""
        return self._draft(address, method, person).written("/")

    def _draft(self, address: Address, method: str, person: str) -> Draft:
        site, given = self._site, self._site.values(address.name)
        query = parse_qsl(site.query(address.name).removeprefix("?"))
        headers = [(b"host", b"testserver")]
        if person != ANONYMOUS:
            token, session = site.tokens[person].encode(), site.sessions[person].encode()
            headers.append(
                (b"authorization", b"Bearer " + token) if address.operations else (b"cookie", b"sessionid=" + session)
            )
        fields = dict(site.sent(address.name) or MORE_FIELDS.get(address.name, {})) if method == "POST" else {}
        if method == "POST" and not address.operations:
            cookies = dict(headers).get(b"cookie", b"")
            headers = [pair for pair in headers if pair[0] != b"cookie"]
            headers.append((b"cookie", b"; ".join(filter(None, [cookies, b"csrftoken=" + CSRF]))))
            headers.append((b"x-csrftoken", CSRF))  # and not a field, which a malformed body could lack
        path = {name: str(given[name]).encode() for name in address.variables}
        return Draft(address, method, path, [(a.encode(), b.encode()) for a, b in query], fields, headers)

    def _spoil(self, draft: Draft, spot: Spot) -> None:
        kind, name = spot
        self.SPOILERS[kind](self, draft, name)

    def _path(self, draft: Draft, name: str) -> None:
        draft.path[name] = self._random.choice(values.WORDS)

    def _query(self, draft: Draft, name: str) -> None:
        key, value = name.encode(), self._random.choice(values.WORDS)
        style = self._random.random()
        if style < 0.8:
            draft.query = [pair for pair in draft.query if pair[0] != key] + [(key, value)]
        elif style < 0.9:
            draft.query += [(key, self._random.choice(values.WORDS)[:2000]) for _ in range(3)]
        else:
            draft.query.append((key + self._random.choice([b"[]", b"[0]", b".a", b"__gt", b"\0"]), value))

    def _names_of_query(self, draft: Draft, _: str) -> None:
        choose = self._random.choice
        draft.query.append((choose(values.WORDS)[:2000], choose(values.WORDS)[:2000]))

    def _field(self, draft: Draft, name: str) -> None:
        choose = self._random.choice
        draft.fields[name] = shapes.Raw(choose(values.JSON_VALUES)) if draft.is_json else choose(values.WORDS)

    def _body(self, draft: Draft, _: str) -> None:
        draft.body = self._random.choice(values.JSON_BODIES if draft.is_json else values.MULTIPARTS)

    def _shape(self, draft: Draft, _: str) -> None:
        """A valid body except for one part; sometimes with bytes in it that are not UTF-8, or cut off."""
        if draft.is_json:
            draft.body = self._damaged(shapes.write(shapes.spoiled_json(self._random, draft.fields)))
        else:
            draft.kind, draft.body = shapes.spoiled_form(self._random, draft.fields or {"a": "b"})

    def _delivery(self, draft: Draft, _: str) -> None:
        name, headers, draft.body = self._deliveries.signed(self._random, self._damaged)
        draft.path["name"] = name.encode()
        draft.headers = [pair for pair in draft.headers if pair[0] != b"content-type"] + headers

    def _damaged(self, text: bytes) -> bytes:
        choice, place = self._random.random(), self._random.randrange(len(text) + 1)
        if choice < 0.1:
            return text[:place] + self._random.choice([b"\xff", b"\xed\xa0\x80", b"\0", b"\xef\xbb\xbf"]) + text[place:]
        return text[:place] if choice < 0.15 else text

    def _method(self, draft: Draft, _: str) -> None:
        draft.method = self._random.choice(values.METHODS)

    def _type(self, draft: Draft, _: str) -> None:
        draft.headers.append((b"content-type", self._random.choice(values.CONTENT_TYPES)))

    def _length(self, draft: Draft, _: str) -> None:
        """A length that is not that of the body, or a body in pieces, or a client that disconnects in its middle."""
        draft.received = self._random.choice(list(Received))
        if self._random.random() < 0.5:
            draft.headers.append((b"content-length", self._random.choice([b"0", b"1", b"10", b"5000", b"4194305"])))

    def _cookies(self, draft: Draft, _: str) -> None:
        """Malformed cookies beside the session."""
        own = dict(draft.headers).get(b"cookie", b"")
        draft.headers = [pair for pair in draft.headers if pair[0] != b"cookie"]
        draft.headers.append((b"cookie", own + b"; " + self._random.choice(values.HEADERS[b"cookie"])))

    def _header(self, draft: Draft, name: str) -> None:
        draft.headers = [pair for pair in draft.headers if pair[0] != name.encode()]
        self._header_twice(draft, name)

    def _header_twice(self, draft: Draft, name: str) -> None:
        draft.headers.append((name.encode(), self._random.choice(values.HEADERS[name.encode()])))

    SPOILERS: ClassVar[dict[str, Callable[[Mutations, Draft, str], None]]] = {
        "path": _path,
        "query": _query,
        "names": _names_of_query,
        "field": _field,
        "body": _body,
        "shape": _shape,
        "delivery": _delivery,
        "method": _method,
        "type": _type,
        "length": _length,
        "cookies": _cookies,
        "header": _header,
        "header twice": _header_twice,
    }


CSRF = b"x" * 32
