# SPDX-License-Identifier: BSD-2-Clause
"""Query parameters of pages. A malformed one is refused: the page without it would answer another question."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import HttpRequest

MOST_DIGITS = 18
"""Of a number that PostgreSQL's bigint holds."""


def number_in(request: HttpRequest, name: str) -> int | None:
    """Return the number that a parameter of the address gives, None where it is absent or empty. Raises BadRequest."""
    text = request.GET.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise BadRequest(f"{name}: “{text[:40]}” is no number: write digits, {MOST_DIGITS} at most, or leave it out.")
    return int(text)
