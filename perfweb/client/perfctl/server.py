# SPDX-License-Identifier: BSD-2-Clause
"""Asks a server over HTTP: answers as dictionaries, lists to their end, refusals and failures as exceptions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from ssl import SSLError
from typing import Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from perfctl.answers import Comparison, RunDetail, RunRow, TestbedRow, TimelineOut

ROOT = "/api/v1/"
USER_AGENT = "perfctl/1"


class ServerError(Exception):
    """The server cannot be reached, or does not answer as a perfweb server does."""


class Refused(ServerError):  # noqa: N818
    """The server refused, with a status and a sentence that says why."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Server:
    """A perfweb server, asked anonymously.

    `timeout` is how many seconds it may be silent. Raises ValueError for an address that is none, and each method
    ServerError (Refused where the server answered that there is no such thing).
    """

    def __init__(self, address: str, timeout: float = 60.0) -> None:
        parts = urlsplit(address)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ValueError(f"“{address}” is no address of a server: write one like http://127.0.0.1:8000")
        self.address = f"{parts.scheme}://{parts.netloc}"
        self.timeout = timeout

    def runs(self, **filters: Any) -> Iterator[RunRow]:
        """Read runs, newest first. The filters are those of the API: state, plan, test, variant, testbed, ..."""
        return cast("Iterator[RunRow]", self.items("runs", **filters))

    def run(self, number: int) -> RunDetail:
        """Read one run."""
        return cast("RunDetail", self.read(f"runs/{number}"))

    def compare_run(self, number: int, **terms: Any) -> list[Comparison]:
        """Compare the baseline of a run with its other variants; `confidence` and `margin` are in percent."""
        return cast("list[Comparison]", self.read(f"runs/{number}/comparisons", **terms)["items"])

    def compare(self, base: str, *others: str, **terms: Any) -> list[Comparison]:
        """Compare sides, each RUN/VARIANT or REVISION/VARIANT, with the base."""
        return cast("list[Comparison]", self.read("comparisons", base=base, **{"with": others}, **terms)["items"])

    def series(self, test: str, **part: Any) -> TimelineOut:
        """Read a test over commits or runs."""
        return cast("TimelineOut", self.read("series", test=test, **part))

    def testbeds(self) -> Iterator[TestbedRow]:
        """Read all testbeds."""
        return cast("Iterator[TestbedRow]", self.items("testbeds"))

    def items(self, path: str, **query: Any) -> Iterator[Any]:
        """Read all items of a list, page by page as they are wanted."""
        page = self.read(path, **query)
        yield from page["items"]
        while page["next"]:
            page = self._json(page["next"])
            yield from page["items"]

    def read(self, path: str, **query: Any) -> Any:
        """Read an address below /api/v1/. Lists in the query repeat a parameter; what is None is left out."""
        given = {name: value for name, value in query.items() if value is not None}
        written = urlencode(given, doseq=True)
        return self._json(f"{ROOT}{quote(path)}{'?' if written else ''}{written}")

    def _json(self, path: str) -> Any:
        with self.open(path) as answer:
            content = answer.read()
        try:
            return json.loads(content)
        except ValueError:
            raise ServerError(f"{self.address} is no perfweb server, or an old one: its answer is not JSON") from None

    @contextmanager
    def open(self, path: str, headers: dict[str, str] | None = None) -> Iterator[HTTPResponse]:
        """Ask for a path of the server; what goes wrong while the answer is read is a ServerError, too."""
        if not path.startswith("/") or path.startswith("//"):
            raise ServerError(f"{self.address} refers to “{path}”, which is not on it")
        request = Request(f"{self.address}{path}", headers={"User-Agent": USER_AGENT, **(headers or {})})  # noqa: S310
        try:
            with urlopen(request, timeout=self.timeout) as answer:  # noqa: S310
                yield answer
        except HTTPError as error:
            raise Refused(error.code, _detail(error)) from None
        except (URLError, HTTPException, TimeoutError, ConnectionError, SSLError) as error:
            reason = getattr(error, "reason", "") or str(error) or type(error).__name__
            raise ServerError(f"cannot read from {self.address}: {reason}") from None


def _detail(error: HTTPError) -> str:
    """The sentence of a problem (RFC 9457), or what else the server said."""
    with error:
        content = error.read()
    if error.headers.get_content_type() == "application/problem+json":
        return str(json.loads(content)["detail"])
    if error.headers.get_content_type() == "text/plain":
        return content.decode(errors="replace").strip()
    return f"the server answers {error.code} {error.reason}"
