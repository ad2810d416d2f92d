# SPDX-License-Identifier: BSD-2-Clause
"""A Patchwork that listens on loopback: as far as its REST API is documented, and only for documented requests."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "a token of twenty or more"
PROJECT = "netdevbpf"
FILTERS = {"project", "state", "since", "order", "page", "per_page"}
CHECK_STATES = {"pending", "success", "warning", "fail"}
SLUG = re.compile(r"[-a-zA-Z0-9_]{1,255}", re.ASCII)
FIRST = datetime(2026, 11, 1, 12)  # noqa: DTZ001
"""The time of patch 0; each further one came a minute later. Patchwork's times are UTC, without a zone."""


@dataclass
class SentSeries:
    """A series that the list has received: one mail, with its patch, for each of its patches."""

    number: int
    name: str
    mails: list[bytes]
    patches: list[int]
    version: int = 1
    submitter: int = 7
    state: str = "new"
    whole: bool = True


@dataclass
class Patchwork:
    """The server, what it has received, and undocumented requests. `answers` replace the next answers."""

    per_page: int = 2
    series: dict[int, SentSeries] = field(default_factory=dict)
    checks: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    answers: list[tuple[int, object, Mapping[str, str]]] = field(default_factory=list)
    server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        handler = type("Handler", (_Handler,), {"patchwork": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self.server:
            self.server.shutdown()
            self.server.server_close()

    @property
    def site(self) -> str:
        assert self.server is not None
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def api(self) -> str:
        return f"{self.site}/api/1.3"

    def receive(self, name: str, *mails: bytes, **fields: Any) -> SentSeries:
        """Receive a series from the list."""
        number = 900 + len(self.series)
        first = sum(len(sent.patches) for sent in self.series.values())
        sent = SentSeries(number, name, list(mails), [first + place for place in range(len(mails))], **fields)
        self.series[number] = sent
        return sent

    def patch(self, number: int, sent: SentSeries) -> dict[str, Any]:
        """A patch in a list, with the addresses that Patchwork gives: no client needs to follow them."""
        return {
            "id": number,
            "url": f"{self.api}/patches/{number}/",
            "msgid": f"<{number}@example.org>",
            "date": (FIRST + timedelta(minutes=number)).isoformat(),
            "name": sent.name,
            "commit_ref": None,
            "state": sent.state,
            "archived": False,
            "submitter": {"id": sent.submitter, "name": "Ada", "email": "ada@example.org"},
            "delegate": None,
            "mbox": "http://169.254.169.254/mbox/",
            "series": [{"id": sent.number, "version": sent.version, "mbox": "http://169.254.169.254/mbox/"}],
            "check": "pending",
        }

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, object, Mapping[str, str]]:
        """Answer a request, as the documentation has it."""
        parts = urlsplit(target)
        self.calls.append(f"{method} {parts.path}")
        if self.answers:
            return self.answers.pop(0)
        if found := re.fullmatch(r"/series/(\d+)/mbox/", parts.path):
            return 200, b"".join(self.series[int(found[1])].mails), {}
        path = parts.path.removeprefix("/api/1.3")
        if path == "/patches/" and method == "GET":
            return self._list(parse_qsl(parts.query))
        if (found := re.fullmatch(r"/series/(\d+)/", path)) and method == "GET":
            return self._detail(int(found[1]))
        if (found := re.fullmatch(r"/patches/(\d+)/checks/", path)) and method == "POST":
            return self._check(int(found[1]), headers, content)
        return self._complain(f"{method} {target} is not documented")

    def _list(self, query: list[tuple[str, str]]) -> tuple[int, object, Mapping[str, str]]:
        wanted = dict(query)
        if unknown := wanted.keys() - FILTERS:
            return self._complain(f"{unknown} is no filter of patches")
        if wanted.get("project") != PROJECT:
            return 200, [], {}
        states = {value for name, value in query if name == "state"}
        since = datetime.fromisoformat(wanted["since"])
        rows = [self.patch(number, sent) for sent in self.series.values() for number in sent.patches]
        rows = [row for row in rows if row["state"] in states and datetime.fromisoformat(row["date"]) >= since]
        size, page = min(int(wanted["per_page"]), self.per_page), int(wanted["page"])
        first = (page - 1) * size
        if first and first >= len(rows):
            return 404, {"detail": "Invalid page."}, {}
        links = (
            [f'<http://169.254.169.254/api/patches/?page={page + 1}>; rel="next"'] if first + size < len(rows) else []
        )
        links.append(f'<{self.api}/patches/?page=1>; rel="first"')
        return 200, rows[first : first + size], {"Link": ", ".join(links)}

    def _detail(self, number: int) -> tuple[int, object, Mapping[str, str]]:
        if number not in self.series:
            return 404, {"detail": "Not found."}, {}
        sent = self.series[number]
        patches = [{"id": one, "url": f"{self.api}/patches/{one}/", "name": sent.name} for one in sent.patches]
        document = {
            "id": number, "name": sent.name, "version": sent.version, "total": len(patches),
            "received_total": len(patches) if sent.whole else 0, "received_all": sent.whole,
            "submitter": {"id": sent.submitter}, "mbox": "http://169.254.169.254/mbox/", "cover_letter": None,
            "patches": patches,
        }  # fmt: skip
        return 200, document, {}

    def _check(self, patch: int, headers: Mapping[str, str], content: bytes) -> tuple[int, object, Mapping[str, str]]:
        if headers.get("Authorization") != f"Token {TOKEN}":
            return 403, {"detail": "Invalid token."}, {}
        if headers.get("Content-Type") != "application/json":
            return self._complain("a POST without a Content-Type changes nothing")
        given = json.loads(content)
        if given.keys() - {"state", "target_url", "description", "context"}:
            return self._complain(f"{set(given)} are not the fields of a check")
        if given["state"] not in CHECK_STATES or SLUG.fullmatch(given["context"]) is None:
            return 400, {"state": [f'"{given["state"]}" is not a valid choice.']}, {}
        self.checks.append((patch, given))
        return 201, {"id": len(self.checks), **given}, {}

    def _complain(self, text: str) -> tuple[int, object, Mapping[str, str]]:
        self.complaints.append(text)
        return 400, {"detail": text}, {}


class _Handler(BaseHTTPRequestHandler):
    patchwork: Patchwork

    def do_GET(self) -> None:
        """Answer."""
        self._answer()

    def do_POST(self) -> None:
        """Answer."""
        self._answer()

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body, more = self.patchwork.answer(self.command, self.path, dict(self.headers), content)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**more, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
