# SPDX-License-Identifier: BSD-2-Clause
"""Query parameters of pages. A wrong value is refused with 400, because the page without it would show other data.

Every view reads its parameters by these functions. An empty value counts as absent, because a browser sends the empty
fields of a form, too. Parameters that a view does not know are ignored. The API has its own check, by type
(perfweb/api/operations.py).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from django.core.exceptions import BadRequest
from django.http import HttpRequest

MOST_DIGITS = 18
"""The max number of PostgreSQL's bigint."""
MOST_CHARACTERS = 200
"""Max characters of a value; names of tests, plans and variants are shorter."""
MOST_LISTED = 40
"""Max number of possible values that an error lists."""
_PERCENT = re.compile(r"\d{1,3}(?:\.\d{1,9})?", re.ASCII)


class ParameterError(BadRequest):
    """A value that a parameter cannot have; the message names the parameter and its valid values."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")


def text_in(request: HttpRequest, name: str, *, most: int = MOST_CHARACTERS) -> str:
    """Return the text of a parameter, "" if it is absent. Raises ParameterError."""
    values = request.GET.getlist(name)
    if len(values) > 1:
        raise ParameterError(name, f"the address has it {len(values)} times; write it once.")
    if values and len(values[0]) > most:
        raise ParameterError(name, f"it has {len(values[0])} characters; {most} at most are possible.")
    return values[0] if values else ""


def texts_in(request: HttpRequest, name: str) -> list[str]:
    """Return the texts of a parameter that may be repeated, without empty ones. Raises ParameterError."""
    values = [value for value in request.GET.getlist(name) if value]
    longest = max(map(len, values), default=0)
    if longest > MOST_CHARACTERS:
        raise ParameterError(name, f"it has {longest} characters; {MOST_CHARACTERS} at most are possible.")
    return values


def choice_in(request: HttpRequest, name: str, choices: Collection[str]) -> str:
    """Return the value of a parameter among some values, "" if it is absent. Raises ParameterError, which lists
    them.
    """
    text = text_in(request, name)
    if text and text not in choices:
        raise ParameterError(name, f"“{text}” is not possible. {possible(choices)}")
    return text


def possible(choices: Collection[str]) -> str:
    """Return the sentence that lists the possible values."""
    some = list(choices)[:MOST_LISTED]
    more = f", and {len(choices) - len(some)} more" if len(choices) > len(some) else ""
    return f"Possible: {', '.join(some)}{more}." if some else "Nothing is possible here: leave it out."


def number_in(request: HttpRequest, name: str) -> int | None:
    """Return the number of a parameter, None if it is absent. Raises ParameterError."""
    text = text_in(request, name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise ParameterError(name, f"“{text[:40]}” is no number: write digits, {MOST_DIGITS} at most, or leave it out.")
    return int(text)


def percent_in(request: HttpRequest, name: str) -> float | None:
    """Return the percentage of a parameter, above 0 and below 100, None if it is absent. Raises ParameterError."""
    text = text_in(request, name)
    if not text:
        return None
    if not (_PERCENT.fullmatch(text) and 0 < float(text) < 100):
        raise ParameterError(
            name, f"“{text[:40]}” is not possible. Write a number of percent above 0 and below 100, such as 2.5."
        )
    return float(text)


def flag_in(request: HttpRequest, name: str) -> bool:
    """Return whether a parameter without a value is present, as in `?once`. Raises ParameterError."""
    if text := text_in(request, name):
        raise ParameterError(name, f"“{text[:40]}” is not possible: it takes no value.")
    return name in request.GET
