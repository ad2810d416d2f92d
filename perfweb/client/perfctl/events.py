# SPDX-License-Identifier: BSD-2-Clause
"""Follows the live progress of a run: server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from perfctl.server import Refused, Server, ServerError

PATIENCE = 5
"""The max number of consecutive failures or timeouts before following ends."""

PAUSE_SECONDS = 2.0


@dataclass(frozen=True)
class Event:
    """One event of a run: its id in the stream, its name, and its values."""

    id: str
    name: str
    values: dict[str, Any]


def follow(server: Server, path: str, pause: float = PAUSE_SECONDS) -> Iterator[Event]:
    """Read all events of a run from the first, then new ones as they come, until it is over.

    After a broken connection it continues where it stopped. Raises ServerError if the server stays unreachable.
    """
    last, failures = "", 0
    while True:
        try:
            with server.open(path, {"Last-Event-ID": last} if last else {}) as answer:
                for event in parse(line.decode(errors="replace") for line in answer):
                    yield event
                    failures, last = 0, event.id or last
                    if event.name == "over":
                        return
            problem = ServerError(f"{server.address} ended the events before the run was over")
        except Refused:
            raise
        except ServerError as error:
            problem = error
        failures += 1
        if failures >= PATIENCE:
            raise problem
        time.sleep(pause)


def parse(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the events of these lines; others, such as comments, are skipped."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.rstrip("\r\n").partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
        elif not value:
            if (values := _values(fields.get("data", ""))) is not None:
                yield Event(fields.get("id", ""), fields.get("event", "message"), values)
            fields = {}


def _values(data: str) -> dict[str, Any] | None:
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None
