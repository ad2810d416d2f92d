# SPDX-License-Identifier: BSD-2-Clause
"""The REST API of a Patchwork (https://patchwork.readthedocs.io/en/latest/api/rest/), version 1.1 or newer.

All requests go to the configured address: no address of an answer is followed, neither that of a next page nor that of
a mailbox, because an answer could name a host of the service's own network.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.utils.dateparse import parse_datetime

from perfweb.inputlimits import FORGE_ANSWER_BYTES, MAIL_BYTES, SERIES_PATCHES
from perfweb.jsontext import JsonError, read_json
from perfweb.outbox import rest, secretfiles
from perfweb.outbox.services import LaterError
from perfweb.patchwork.models import Project

PER_PAGE = 100
MOST_PAGES = 10
"""Max pages of one poll; the next poll reads on."""
T = TypeVar("T")
LARGEST = 2**53
SECONDS = 45.0
"""Max time of a poll, after which it begins no request: the messenger has other work. The next poll goes on."""
_NEXT = re.compile(r'[;,]\s*rel="?next"?\s*(?:[;,]|$)')
"""Of a header Link (RFC 8288)."""
_API = re.compile(r"/api(?:/1\.[1-9])?/?$")


class ShapeError(ValueError):
    """An answer lacks what the API documents."""


@dataclass(frozen=True)
class Patch:
    """A patch in a list: its number, the time of its mail, its state, and the numbers of its series."""

    number: int
    date: datetime
    state: str
    series: tuple[int, ...]


@dataclass(frozen=True)
class SeriesDetail:
    """A series: `whole` is whether all of its patches have arrived."""

    name: str
    version: int
    submitter: int
    whole: bool
    patches: tuple[int, ...]


def site_of(api: str) -> str:
    """Return the address of the pages of a Patchwork. Raises ValueError for an address that is none of an API."""
    if _API.search(api) is None:
        raise ValueError(f"{api} is no API of Patchwork: it ends with /api or /api/1.1 to /api/1.9")
    return _API.sub("", api)


def token_file(project: Project) -> Path:
    """Return the file of the token, with which the service posts checks."""
    return Path(settings.FORGE_SECRETS) / f"patchwork-{project.name}.token"


class Client:
    """The API as one project uses it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.api = project.api.rstrip("/")
        self.site = site_of(project.api)
        self.deadline = time.monotonic() + SECONDS

    def patches(self) -> Iterator[Patch]:
        """Yield the patches since the newest known one in the wanted states, oldest first.

        Raises LaterError, NeverError and ShapeError.
        """
        words = [
            ("project", self.project.project),
            *(("state", state) for state in self.project.states),
            ("since", self.project.since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")),
            ("order", "date"),
            ("per_page", str(PER_PAGE)),
        ]
        for page in range(1, MOST_PAGES + 1):
            answer = self._get(f"{self.api}/patches/?{urlencode([*words, ('page', str(page))])}")
            listed = _json(answer.data)
            if not isinstance(listed, list) or len(listed) > PER_PAGE:
                raise ShapeError(f"the list of patches is no list of up to {PER_PAGE}")
            yield from map(_patch, listed)
            if _NEXT.search(answer.headers.get("Link", "")) is None:
                return

    def series(self, number: int) -> SeriesDetail:
        """Return a series. Raises LaterError, NeverError and ShapeError."""
        found = _json(self._get(f"{self.api}/series/{number}/").data)
        patches = _field(found, "patches", list)
        if len(patches) > SERIES_PATCHES:
            raise ShapeError(f"it has {len(patches)} patches; the max is {SERIES_PATCHES}")
        return SeriesDetail(
            name=(found.get("name") or "")[:255] if isinstance(found.get("name") or "", str) else "",
            version=_number(found, "version"),
            submitter=_number(_field(found, "submitter", dict), "id"),
            whole=_field(found, "received_all", bool),
            patches=tuple(_number(patch, "id") for patch in patches),
        )

    def mbox(self, number: int) -> bytes:
        """Return the mails of a series. Raises LaterError and NeverError."""
        return self._get(f"{self.site}/series/{number}/mbox/", MAIL_BYTES).data

    def _get(self, address: str, most: int = FORGE_ANSWER_BYTES) -> rest.Answer:
        if time.monotonic() > self.deadline:
            raise LaterError(f"a poll takes longer than {SECONDS:g} s; the next one goes on")
        return rest.get(address, {"Accept": "*/*"}, most)

    def check(self, patch: int, content: Mapping[str, str]) -> str:
        """Add a check to a patch; return its number. Raises LaterError, NeverError and secretfiles.SecretError."""
        token = secretfiles.read(token_file(self.project))
        address = f"{self.api}/patches/{patch}/checks/"
        made = rest.call("POST", address, {"Authorization": f"Token {token}"}, dict(content))
        return str(_number(made, "id"))


def _json(data: bytes) -> Any:
    try:
        return read_json(data)
    except JsonError as error:
        raise LaterError(f"the answer {error}", everything=True) from None


def _patch(found: Any) -> Patch:
    date = parse_datetime(_field(found, "date", str)[:40])
    if date is None:
        raise ShapeError("a patch has no date in ISO 8601")
    series: Sequence[Any] = _field(found, "series", list)
    return Patch(
        number=_number(found, "id"),
        date=date.replace(tzinfo=date.tzinfo or UTC),  # Patchwork's times are UTC, without a zone
        state=_field(found, "state", str)[:100],
        series=tuple(_number(one, "id") for one in series[:SERIES_PATCHES]),
    )


def _field(found: Any, name: str, kind: type[T]) -> T:
    value = found.get(name) if isinstance(found, dict) else None
    if not isinstance(value, kind):
        raise ShapeError(f"an answer has no {name} that is {kind.__name__}")
    return value


def _number(found: Any, name: str) -> int:
    value = _field(found, name, int)
    if isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise ShapeError(f"an answer has {name}: {str(value)[:20]}, which is no number")
    return value
