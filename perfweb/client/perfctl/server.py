# SPDX-License-Identifier: BSD-2-Clause
"""HTTP client of a server: responses as dictionaries, complete lists, errors as exceptions."""

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

from perfctl import tokens
from perfctl.answers import (
    Account,
    AlertDetail,
    AlertRow,
    Cancelled,
    Comparison,
    Queue,
    RunDetail,
    RunRow,
    Service,
    SubmissionDetail,
    TestbedRow,
    TimelineOut,
)

ROOT = "/api/v1/"
USER_AGENT = "perfctl/1"
LARGEST = 64 << 20
LARGEST_ERROR = 1 << 20
"""Max bytes of a response of the API, and of an error."""


class ServerError(Exception):
    """The server cannot be reached, or does not respond as a perfweb server does."""


class Refused(ServerError):  # noqa: N818
    """The server refused, with a status and a reason."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Server:
    """A perfweb server. Requests are anonymous, except those that need an account, which `token` identifies.

    `timeout` is the time-out in seconds. Raises ValueError for an invalid address, and each method ServerError (Refused
    if the server has no such object).
    """

    def __init__(self, address: str, timeout: float = 60.0, token: str = "") -> None:
        parts = urlsplit(address)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ValueError(f"“{address}” is no address of a server: write one like http://127.0.0.1:8000")
        self.address = f"{parts.scheme}://{parts.netloc}"
        self.timeout = timeout
        self.token = token

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

    def queue(self, testbed: str | None = None) -> Queue:
        """Read the queue, of all testbeds or one."""
        return cast("Queue", self.read("queue", testbed=testbed))

    def maintain(self, testbed: str, why: str) -> Service:
        """Take a testbed out of service."""
        return cast("Service", self.change(f"testbeds/{testbed}/maintain", {"why": why}))

    def put_back(self, testbed: str) -> Service:
        """Put a testbed back into service."""
        return cast("Service", self.change(f"testbeds/{testbed}/back"))

    def account(self) -> Account:
        """Read the account of the token."""
        return cast("Account", self._json(f"{ROOT}account", signed=True))

    def cancel(self, number: int) -> Cancelled:
        """Cancel a run."""
        return cast("Cancelled", self.change(f"runs/{number}/cancel"))

    def submit(self, patch: str, testbed: str, **wanted: Any) -> SubmissionDetail:
        """Submit a patch, or an empty one with a `ref`; the options are those of the API: tests, tunables, each, base,
        title, plan, repository, ref, message_id.
        """
        return cast("SubmissionDetail", self.change("submissions", {"patch": patch, "testbed": testbed, **wanted}))

    def submission(self, number: int) -> SubmissionDetail:
        """Read one submission."""
        return cast("SubmissionDetail", self.read(f"submissions/{number}"))

    def approve(self, number: int) -> SubmissionDetail:
        """Approve a waiting submission."""
        return cast("SubmissionDetail", self.change(f"submissions/{number}/approve"))

    def refuse(self, number: int, reason: str) -> SubmissionDetail:
        """Reject a waiting submission."""
        return cast("SubmissionDetail", self.change(f"submissions/{number}/refuse", {"reason": reason}))

    def withdraw(self, number: int) -> SubmissionDetail:
        """End a submission and its runs."""
        return cast("SubmissionDetail", self.change(f"submissions/{number}/cancel"))

    def rerun(self, number: int, boots: int | None = None) -> SubmissionDetail:
        """Measure a submission again, with that many boots of each variant, or as many as its plan has."""
        return cast("SubmissionDetail", self.change(f"submissions/{number}/rerun", {"boots": boots}))

    def alerts(self, **filters: Any) -> Iterator[AlertRow]:
        """Read alerts, newest first. The filters are those of the API: branch, state."""
        return cast("Iterator[AlertRow]", self.items("alerts", **filters))

    def alert(self, number: int) -> AlertDetail:
        """Read one alert with its history."""
        return cast("AlertDetail", self.read(f"alerts/{number}"))

    def update_alert(self, number: int, **fields: Any) -> AlertDetail:
        """Update an alert; the fields are those of the API: state, owner, due, text."""
        return cast("AlertDetail", self.change(f"alerts/{number}/say", fields))

    say = update_alert
    """The former name."""

    def change(self, path: str, content: object = None) -> Any:
        """Send a change to an address below /api/v1/, with content in JSON."""
        return self._json(f"{ROOT}{quote(path)}", signed=True, content=json.dumps(content).encode())

    def items(self, path: str, **query: Any) -> Iterator[Any]:
        """Read all items of a list, requesting each page when it is needed."""
        page = self.read(path, **query)
        yield from page["items"]
        while page["next"]:
            page = self._json(page["next"])
            yield from page["items"]

    def read(self, path: str, **query: Any) -> Any:
        """Read an address below /api/v1/. Lists in the query repeat a parameter; None is left out."""
        given = {name: value for name, value in query.items() if value is not None}
        written = urlencode(given, doseq=True)
        return self._json(f"{ROOT}{quote(path)}{'?' if written else ''}{written}")

    def _json(self, path: str, *, signed: bool = False, content: bytes | None = None) -> Any:
        with self.open(path, signed=signed, content=content) as answer:
            body = answer.read(LARGEST + 1)
        if len(body) > LARGEST:
            raise ServerError(f"{self.address} sent more than {LARGEST} bytes for {path.partition('?')[0]}")
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise ServerError(f"{self.address} is no perfweb server, or an old one: its answer is not JSON") from None

    @contextmanager
    def open(
        self, path: str, headers: dict[str, str] | None = None, *, signed: bool = False, content: bytes | None = None
    ) -> Iterator[HTTPResponse]:
        """Request a path of the server, or send content to it. An error while the response is read is a ServerError,
        too. With `signed` the token is sent, though not to another server after a redirect.
        """
        if not path.startswith("/") or path.startswith("//"):
            raise ServerError(f"{self.address} refers to “{path}”, which is not on it")
        known = {"User-Agent": USER_AGENT, **({"Content-Type": "application/json"} if content is not None else {})}
        request = Request(f"{self.address}{path}", content, headers={**known, **(headers or {})})  # noqa: S310
        if signed:
            tokens.check_encrypted(self.address)
            request.add_unredirected_header("Authorization", f"Bearer {self._signature()}")
        try:
            with urlopen(request, timeout=self.timeout) as answer:  # noqa: S310
                yield answer
        except HTTPError as error:
            raise Refused(error.code, _detail(error)) from None
        except (URLError, HTTPException, TimeoutError, ConnectionError, SSLError) as error:
            reason = getattr(error, "reason", "") or str(error) or type(error).__name__
            raise ServerError(f"cannot read from {self.address}: {reason}") from None

    def _signature(self) -> str:
        if not self.token:
            raise ValueError(f"this needs a token for {self.address}: perfctl login, or PERFCTL_TOKEN")
        return self.token


def _detail(error: HTTPError) -> str:
    """The detail of a problem (RFC 9457), or the text of another response."""
    with error:
        content = error.read(LARGEST_ERROR)
    if error.headers.get_content_type() == "application/problem+json":
        return str(json.loads(content)["detail"])
    if error.headers.get_content_type() == "text/plain":
        return content.decode(errors="replace").strip()
    return f"the server answers {error.code} {error.reason}"
