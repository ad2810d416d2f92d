# SPDX-License-Identifier: BSD-2-Clause
"""Positive grammars for untrusted values: what is not described is refused.

A grammar takes a value and the policy of the host, and returns the value in its normal form. Without a host the policy
is None, and a grammar checks the form alone. Strings are matched against patterns of ASCII characters, so that no
look-alike of Unicode passes. Numbers are finite and within limits; a boolean is never a number.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Grammar = Callable[[Any, Any], Any]
"""value, policy -> the value in its normal form; raises GrammarError."""

_DECIMAL = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)


class GrammarError(ValueError):
    """A value does not match a grammar; the message has what was expected, or where in the value the fault is."""


def text(pattern: str, what: str, longest: int = 256) -> Grammar:
    """A string that matches a whole pattern (ASCII) and has at most `longest` characters."""
    compiled = re.compile(pattern, re.ASCII)

    def check(value: Any, _policy: Any) -> str:
        if type(value) is not str or len(value) > longest or compiled.fullmatch(value) is None:
            raise GrammarError(f"expected {what}")
        return value

    return check


def printable(longest: int, breaks: str = "") -> Grammar:
    """A string of printable characters and spaces, and of the control characters in `breaks`."""
    table = {ord(character): None for character in breaks}

    def check(value: Any, _policy: Any) -> str:
        if type(value) is not str or len(value) > longest or not value.translate(table).isprintable():
            raise GrammarError(f"expected at most {longest} printable characters")
        return value

    return check


def integer(lowest: int, highest: int) -> Grammar:
    """An integer, or the decimal string that Python prints of it."""

    def check(value: Any, _policy: Any) -> int:
        if type(value) is str and _DECIMAL.fullmatch(value):
            value = int(value)
        if type(value) is not int or not lowest <= value <= highest:
            raise GrammarError(f"expected a whole number from {lowest} to {highest}")
        return value

    return check


def number(lowest: float, highest: float) -> Grammar:
    """A finite number."""

    def check(value: Any, _policy: Any) -> float:
        if type(value) not in (int, float) or not lowest <= value <= highest or not math.isfinite(value):
            raise GrammarError(f"expected a number from {lowest:g} to {highest:g}")
        found: float = value
        return found

    return check


def flag(value: Any, _policy: Any) -> bool:
    """A boolean; no number or string is accepted in its place."""
    if type(value) is not bool:
        raise GrammarError("expected true or false")
    return value


def choice(*allowed: str) -> Grammar:
    """One of these strings."""

    def check(value: Any, _policy: Any) -> str:
        if type(value) is not str or value not in allowed:
            raise GrammarError(f"expected one of {', '.join(allowed)}")
        return value

    return check


def listed(item: Grammar, most: int, minimum: int = 0, empty: str = "") -> Grammar:
    """A list of such items; `empty` is the error for one with too few."""

    def check(value: Any, policy: Any) -> list[Any]:
        if type(value) is not list or len(value) > most:
            raise GrammarError(f"expected a list of at most {most}")
        if len(value) < minimum:
            raise GrammarError(empty or f"expected a list of at minimum {minimum}")
        return [_within(f"[{place}]", item, entry, policy) for place, entry in enumerate(value)]

    return check


def either(*grammars: Grammar) -> Grammar:
    """The first of these grammars that accepts the value."""

    def check(value: Any, policy: Any) -> Any:
        why = []
        for grammar in grammars:
            try:
                return grammar(value, policy)
            except GrammarError as error:
                why.append(str(error))
        raise GrammarError(", or ".join(dict.fromkeys(why)))

    return check


def record(fields: Mapping[str, Grammar], required: tuple[str, ...] = ()) -> Grammar:
    """A dictionary with these fields and no others."""

    def check(value: Any, policy: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise GrammarError(f"expected a dictionary of {', '.join(fields)}")
        if missing := [name for name in required if name not in value]:
            raise GrammarError(f"missing required arguments: {', '.join(missing)}")
        return {name: _field(fields, name, value[name], policy) for name in value}

    return check


def _field(fields: Mapping[str, Grammar], name: Any, value: Any, policy: Any) -> Any:
    if type(name) is not str or name not in fields:
        raise GrammarError(f"{name!r:.80} is none of {', '.join(fields)}")
    return _within(f".{name}", fields[name], value, policy)


def mapping(key: Grammar, item: Grammar, most: int) -> Grammar:
    """A dictionary whose keys and values match these grammars."""

    def check(value: Any, policy: Any) -> dict[Any, Any]:
        if type(value) is not dict or len(value) > most:
            raise GrammarError(f"expected a dictionary of at most {most} entries")
        return {key(name, policy): _within(f"[{name!r:.80}]", item, value[name], policy) for name in value}

    return check


def _within(where: str, grammar: Grammar, value: Any, policy: Any) -> Any:
    """Applies a grammar to a part of a value; its error names the part."""
    try:
        return grammar(value, policy)
    except GrammarError as error:
        inner = str(error)
        raise GrammarError(f"{where}{'' if inner[:1] in {'[', '.'} else ': '}{inner}") from None


def address(*versions: int) -> Grammar:
    """An IP address in its usual form, without a zone."""

    def check(value: Any, _policy: Any) -> str:
        found = _parsed(ipaddress.ip_address, value)
        if found.version not in versions:
            raise GrammarError("expected an IP address")
        return str(found)

    return check


def interface_address(version: int) -> Grammar:
    """An IP address with a prefix length, such as 10.77.1.2/24."""

    def check(value: Any, _policy: Any) -> str:
        found = _parsed(ipaddress.ip_interface, value)
        if found.version != version or "/" not in value:
            raise GrammarError(f"expected an IPv{version} address with prefix length")
        return str(found)

    return check


def _parsed(parse: Callable[[str], Any], value: Any) -> Any:
    if type(value) is not str or re.fullmatch(r"[0-9a-fA-F.:/]{2,64}", value, re.ASCII) is None:
        raise GrammarError("expected an IP address")
    try:
        return parse(value)
    except ValueError:
        raise GrammarError("expected an IP address") from None
