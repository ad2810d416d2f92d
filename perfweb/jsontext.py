# SPDX-License-Identifier: BSD-2-Clause
"""Reads JSON (RFC 8259) of untrusted origin."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from perfweb.inputlimits import JSON_DEPTH, REQUEST_JSON_ESCAPES, REQUEST_JSON_PARTS

# What is skipped, and a text, which may be cut off, or what stands before a value outside of one, or the end: without
# the end a search that finds nothing would begin again at each byte.
_PART = re.compile(rb'[^",\[{]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[,\[{]|\Z)', re.DOTALL)


class JsonError(ValueError):
    """The text is not JSON, or is nested too deeply; the message completes "The document …"."""


Pairs = list[tuple[str, Any]]
"""The names and values of an object, in the order of its text."""

Objects = Callable[[Pairs], dict[str, Any]]
"""Makes the object, and handles duplicate names (RFC 8259, section 4)."""


def read_json(text: str | bytes, *, objects: Objects | None = None) -> Any:
    """Return the value of a JSON text.  Raises JsonError and nothing else.

    `objects` is refuse_repeated or mark_repeated; without it the last value of a repeated name counts.

    Python's parser alone accepts NaN and Infinity, which are not JSON. For deep nesting it raises RecursionError, or
    returns a value on which the next recursive function does.
    """
    try:
        if isinstance(text, bytes):  # json decodes half surrogate pairs one by one: 0.3 s for 4 MiB
            text = text.decode("utf-8-sig")
        value = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=objects)
    except RecursionError:
        raise JsonError(f"is nested more than {JSON_DEPTH} deep") from None
    except ValueError as error:  # also for bytes that are not UTF-8, and numbers of more than 4300 digits
        raise JsonError(f"is not JSON: {str(error)[:200]}") from None
    check_depth(value)
    return value


def read_request(body: bytes, *, objects: Objects | None = None) -> Any:
    """Return the value of the JSON body of a request.  Raises JsonError and nothing else.

    The parser holds the interpreter's lock for a time proportional to the number of parts, so a body with too many
    parts is refused first.
    """
    if (escapes := body.count(b"\\")) > REQUEST_JSON_ESCAPES:
        raise JsonError(f"has {escapes} backslashes; {REQUEST_JSON_ESCAPES} at most are read: send less")
    if any(number >= REQUEST_JSON_PARTS for number, _ in enumerate(_PART.finditer(body))):
        raise JsonError(
            f"has more than {REQUEST_JSON_PARTS} texts, and commas and opening brackets outside of them: send less"
        )
    return read_json(body, objects=objects)


def check_depth(value: object) -> None:
    """Raise JsonError if a parsed value is nested more than JSON_DEPTH deep."""
    level: list[object] = [value]
    for _ in range(JSON_DEPTH):
        level = [inner for one in level for inner in _inside(one) if isinstance(inner, dict | list)]
        if not level:
            return
    raise JsonError(f"is nested more than {JSON_DEPTH} deep")


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


class Repeated:
    """Replaces different values of a duplicate name: none of them counts."""

    def __repr__(self) -> str:
        return "several values of one name"


def mark_repeated(pairs: Pairs) -> dict[str, Any]:
    """Return an object in which Repeated() is the value of each duplicate name with different values."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        found[name] = value if name not in found or found[name] == value else Repeated()
    return found


def refuse_repeated(pairs: Pairs) -> dict[str, Any]:
    """Return an object, or raise ValueError if it has a duplicate name."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name “{name[:40]}” is there twice")
        found[name] = value
    return found


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and Infinity; for the parameter `parse_constant` of the module json."""
    raise ValueError(f"{name} is not a JSON number")
