# SPDX-License-Identifier: BSD-2-Clause
"""Bodies of requests: JSON (RFC 8259) that has one meaning and that the database can hold."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser


class StrictParser(Parser):
    """Refuses duplicate names (RFC 8259 section 4), numbers that JSON does not have, NUL, and very deep nesting."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """Return the object. Raises ValueError with what is wrong."""
        try:
            found = json.loads(request.body, object_pairs_hook=_once, parse_constant=_no_constant)
        except RecursionError:
            raise ValueError("it is nested too deep") from None
        if not isinstance(found, dict):
            raise ValueError("it has to be an object, as {…}")
        _refuse_nul(found)
        return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name “{next(name for name in names if names.count(name) > 1)[:40]}” is there twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no number {name}")


def _refuse_nul(found: dict[str, Any]) -> None:
    """Look for NUL in all texts; a loop, because the nesting is the client's."""
    waiting: list[Any] = [found]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and "\0" in value:
            raise ValueError("a text in it has a NUL character, which the database cannot hold: remove it")
