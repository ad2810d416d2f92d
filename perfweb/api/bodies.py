# SPDX-License-Identifier: BSD-2-Clause
"""Bodies of requests: JSON (RFC 8259) that is unambiguous and that the database can store."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from perfweb.jsontext import JsonError, read_request, refuse_repeated


class StrictParser(Parser):
    """Refuses duplicate names (RFC 8259 section 4), numbers that JSON does not have, NUL, and deep nesting."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """Return the object. Raises ValueError with what is wrong."""
        try:
            found = read_request(request.body, objects=refuse_repeated)
        except JsonError as error:
            raise ValueError(f"it {error}") from None
        if not isinstance(found, dict):
            raise ValueError("it has to be an object, as {…}")
        _refuse_nul(found)
        return found


def _refuse_nul(value: object) -> None:
    """Check all names and texts of a value, which is not nested deeply, for NUL."""
    if isinstance(value, dict):
        _refuse_nul([*value.keys(), *value.values()])
    elif isinstance(value, list):
        for inner in value:
            _refuse_nul(inner)
    elif isinstance(value, str) and "\0" in value:
        raise ValueError("a text in it has a NUL character, which the database cannot hold: remove it")
