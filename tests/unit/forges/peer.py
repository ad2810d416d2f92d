# SPDX-License-Identifier: BSD-2-Clause
"""A forge that listens on loopback: it accepts only requests that its API description allows."""

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema
import yaml

DATA = Path(__file__).parent / "data"
TOKEN = "a token of twenty or more"
LOGIN = "perf-bot"
_CHECKED = {"/repos/{owner}/{repo}", "/projects/{id}", "/personal_access_tokens/self"}


@dataclass
class Trouble:
    """Failures of the next requests: another response, or none after the change was made."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    lost: bool = False


class Peer:
    """A forge of a kind, with the comments and statuses that it received."""

    def __init__(self, kind: str) -> None:
        described = yaml.safe_load((DATA / f"{kind}-openapi.yaml").read_text(encoding="utf-8"))
        self.kind, self.described = kind, described
        self.routes = [(_pattern(path), path, methods) for path, methods in described["paths"].items()]
        self.comments: dict[int, str] = {}
        self.issues: dict[int, dict[str, Any]] = {}
        self.statuses: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.complaints: list[str] = []
        self.trouble: Trouble | None = None
        self.permissions: dict[str, Any] = {"push": True, "project_access": {"access_level": 30}, "group_access": None}
        self.scopes = ["api"]
        self.port = 0
        self.server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        handler = type("Handler", (_Handler,), {"peer": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def answer(self, method: str, target: str, headers: Mapping[str, str], content: bytes) -> tuple[int, object]:
        """Check a request against the description, and execute it; 400 with an error that fails the test otherwise."""
        self.calls.append(method)
        parts = urlsplit(target)
        wanted = self.described["authorization"]
        if headers.get(wanted["header"]) != wanted["begins"] + TOKEN:
            return 401, {"message": "Bad credentials"}
        for pattern, path, methods in self.routes:
            if (found := pattern.fullmatch(parts.path)) and method.lower() in methods:
                operation = methods[method.lower()]
                if complaint := _complaint(operation, parts.query, content):
                    return self._complain(f"{method} {path}: {complaint}")
                given = json.loads(content) if content else {}
                return int(next(iter(operation["responses"]))), self._do(path, method, found, given)
        return self._complain(f"{method} {target}: nothing is described there")

    def _do(self, path: str, method: str, found: "re.Match[str]", given: dict[str, Any]) -> object:
        if path in _CHECKED:
            return {"permissions": self.permissions, "scopes": self.scopes}
        if "statuses" in path:
            self.statuses.append({"sha": found.groups()[-1], **given})
            return {"id": len(self.statuses)}
        if "comment" not in path and "notes" not in path:
            return self._do_issue(method, found, given)
        if method == "GET":
            return [self._comment(number) for number in self.comments]
        number = int(found.groups()[-1]) if method != "POST" else 100 + len(self.comments)
        self.comments[number] = given["body"]
        return self._comment(number)

    def _do_issue(self, method: str, found: "re.Match[str]", given: dict[str, Any]) -> object:
        if method == "GET":
            return [self._issue(number) for number in self.issues]
        number = int(found.groups()[-1]) if method != "POST" else 7 + len(self.issues)
        turned = {"close": "closed", "reopen": "open"}.get(given.pop("state_event", ""))
        self.issues.setdefault(number, {"state": "open"}).update(given, **({"state": turned} if turned else {}))
        return self._issue(number)

    def _issue(self, number: int) -> dict[str, Any]:
        """An issue has two numbers: `id` in all of the forge, and the one of users and addresses."""
        key = "iid" if self.kind == "gitlab" else "number"
        return {"id": 5000 + number, key: number, **self._author(), **self.issues[number]}

    def _comment(self, number: int) -> dict[str, Any]:
        return {"id": number, "body": self.comments[number], **self._author()}

    def _author(self) -> dict[str, Any]:
        return {"author": {"username": LOGIN}} if self.kind == "gitlab" else {"user": {"login": LOGIN}}

    def _complain(self, complaint: str) -> tuple[int, object]:
        self.complaints.append(complaint)
        return 400, {"message": complaint}


class _Handler(BaseHTTPRequestHandler):
    peer: Peer

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        trouble = self.peer.trouble
        if trouble and not trouble.lost:
            self.peer.calls.append(self.command)
            self._send(trouble.status, {"message": "trouble"}, trouble.headers)
            return
        status, body = self.peer.answer(self.command, self.path, dict(self.headers), content)
        if trouble:
            self.connection.close()
            return
        self._send(status, body)

    def _send(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _pattern(path: str) -> "re.Pattern[str]":
    return re.compile(re.sub(r"\{\w+\}", "([^/]+)", path))


def _complaint(operation: Mapping[str, Any], query: str, content: bytes) -> str:
    known = {one["name"]: one["schema"] for one in operation.get("parameters", [])}
    try:
        for name, values in parse_qs(query, strict_parsing=True).items() if query else ():
            kind = known[name].get("type")
            jsonschema.validate(int(values[0]) if kind == "integer" else values[0], known[name])
        body = operation.get("requestBody")
        if bool(body) != bool(content):
            return "a body where there should be none, or none"
        if body:
            schema = body["content"]["application/json"]["schema"]
            unknown = set(json.loads(content)) - set(schema["properties"])
            if unknown:
                return f"{unknown} is not described"
            jsonschema.validate(json.loads(content), schema)
    except (KeyError, ValueError, jsonschema.ValidationError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
