# SPDX-License-Identifier: BSD-2-Clause
"""Bodies that are valid except for one part: JSON documents, urlencoded forms, and multipart forms.

A body of random bytes is refused by the first check. These get past the checks before the faulty part, so they reach
the view, its services and the database.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_from_bytes, urlencode

from tests.unit.crawl import values

DEEP = 40
"""More levels than perfweb.inputlimits.JSON_DEPTH."""


@dataclass(frozen=True)
class Raw:
    """A part of a JSON text as it is written, valid or not."""

    text: bytes


@dataclass(frozen=True)
class Pairs:
    """An object with names that may be duplicate."""

    items: tuple[tuple[Any, Any], ...]


def write(value: Any) -> bytes:
    """Return the JSON text of a value."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict | Pairs):
        items = value.items if isinstance(value, Pairs) else value.items()
        return b"{" + b", ".join(write(name) + b": " + write(inner) for name, inner in items) + b"}"
    if isinstance(value, list):
        return b"[" + b", ".join(write(inner) for inner in value) + b"]"
    return json.dumps(value).encode()


def spoiled_json(choose: random.Random, value: Any) -> Any:
    """Return a value in which one part, at any depth, is replaced, removed, duplicated, or wrapped."""
    if isinstance(value, dict) and value and choose.random() < 0.85:
        name = choose.choice(sorted(value))
        if isinstance(value[name], dict | list) and choose.random() < 0.7:
            return {**value, name: spoiled_json(choose, value[name])}
        return choose.choice(_IN_OBJECT)(choose, value, name)
    if isinstance(value, list) and value and choose.random() < 0.6:
        place = choose.randrange(len(value))
        return [*value[:place], spoiled_json(choose, value[place]), *value[place + 1 :]]
    return choose.choice([_any, _wrapped])(choose, value)


def _any(choose: random.Random, _: Any) -> Any:
    return Raw(choose.choice(values.JSON_VALUES))


def _wrapped(choose: random.Random, value: Any) -> Any:
    for _ in range(choose.choice([1, 2, DEEP])):
        value = choose.choice([[value], {"a": value}])
    return value


def _replaced(choose: random.Random, value: dict[str, Any], name: str) -> Any:
    return {**value, name: _any(choose, None)}


def _rewritten(choose: random.Random, value: dict[str, Any], name: str) -> Any:
    """A text of the kinds that forms get, in the place of a value."""
    return {**value, name: choose.choice(values.WORDS).decode("utf-8", "surrogateescape")}


def _nested(choose: random.Random, value: dict[str, Any], name: str) -> Any:
    return {**value, name: _wrapped(choose, value[name])}


def _without(_: random.Random, value: dict[str, Any], name: str) -> Any:
    return {other: inner for other, inner in value.items() if other != name}


def _twice(choose: random.Random, value: dict[str, Any], name: str) -> Any:
    return Pairs((*value.items(), (name, choose.choice([value[name], _any(choose, None)]))))


def _renamed(choose: random.Random, value: dict[str, Any], name: str) -> Any:
    names = [Raw(b'"\\ud800"'), Raw(b'"\xff"'), Raw(b"1"), name.upper(), f"{name}\0", f"{name}.a", "__class__", ""]
    return Pairs((*_without(choose, value, name).items(), (choose.choice(names), value[name])))


_IN_OBJECT: list[Callable[[random.Random, dict[str, Any], str], Any]] = [
    _replaced,
    _rewritten,
    _nested,
    _without,
    _twice,
    _renamed,
]


def spoiled_form(choose: random.Random, fields: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return content type and body of a form of which one field, or its encoding, is faulty."""
    pairs = [(_bytes(name), _bytes(value)) for name, value in fields.items()]
    if choose.random() < 0.5:
        return b"application/x-www-form-urlencoded", choose.choice(_URLENCODED)(choose, pairs)
    return choose.choice(_MULTIPART)(choose, pairs)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")


Fields = list[tuple[bytes, bytes]]


def _some_missing(choose: random.Random, pairs: Fields) -> bytes:
    return urlencode([pair for pair in pairs if choose.random() < 0.7]).encode()


def _repeated(choose: random.Random, pairs: Fields) -> bytes:
    name, _ = choose.choice(pairs)
    return urlencode([*pairs, (name, choose.choice(values.WORDS)), (name, b"")]).encode()


def _other_names(choose: random.Random, pairs: Fields) -> bytes:
    end = choose.choice([b"[]", b"[0]", b".a", b"\0", b"\xff", b" ", b"-0", b"_0"])
    return urlencode([(name + end if choose.random() < 0.3 else name, value) for name, value in pairs]).encode()


def _badly_quoted(choose: random.Random, pairs: Fields) -> bytes:
    end = choose.choice([b"%", b"%zz", b"%ff", b"%ed%a0%80", b"\xff", b"&&&", b";a=b", b"=", b"%00", b"+%", b"\r\n"])
    return b"&".join(quote_from_bytes(name).encode() + b"=" + value for name, value in pairs) + end


def _many(choose: random.Random, pairs: Fields) -> bytes:
    return urlencode([*pairs, *((b"a%d" % number, b"b") for number in range(choose.choice([50, 1100])))]).encode()


_URLENCODED = [_some_missing, _repeated, _other_names, _badly_quoted, _many]


def _part(name: bytes, value: bytes, head: bytes = b"", named: bytes = b"") -> bytes:
    start = b'--x\r\nContent-Disposition: form-data; name="' + name + b'"' + named + b"\r\n"
    return start + head + b"\r\n" + value + b"\r\n"


MULTIPART = b"multipart/form-data; boundary=x"


def _multipart(parts: list[bytes], end: bytes = b"--x--\r\n") -> bytes:
    return b"".join(parts) + end


def _other_boundary(choose: random.Random, pairs: Fields) -> tuple[bytes, bytes]:
    boundary = choose.choice([b"y", b"--x", b'"x', b"x y", b"X", b"", b"x; boundary=y", b"x" * 70, b"x" * 300])
    return b"multipart/form-data; boundary=" + boundary, _multipart([_part(*pair) for pair in pairs])


def _cut_off(choose: random.Random, pairs: Fields) -> tuple[bytes, bytes]:
    whole = _multipart([_part(*pair) for pair in pairs])
    return MULTIPART, whole[: choose.randrange(len(whole))]


def _parts_missing(choose: random.Random, pairs: Fields) -> tuple[bytes, bytes]:
    return MULTIPART, _multipart([_part(*pair) for pair in pairs if choose.random() < 0.7])


def _texts_as_files(choose: random.Random, pairs: Fields) -> tuple[bytes, bytes]:
    """Fields whose text comes as a file, with names and types that a browser does not send."""
    name = choose.choice([b"", b"a", b"..", b"a/../b", b"\xff", b"x" * 300, b"a\0", b"con", b"a.mbox"])
    kind = choose.choice([b"", b"Content-Type: \xff\r\n", b"Content-Type: text/plain; charset=idna\r\n"])
    named = b'; filename="' + name + b'"'
    parts = [_part(*pair, head=kind, named=named if choose.random() < 0.4 else b"") for pair in pairs]
    return MULTIPART, _multipart(parts)


def _encoded_parts(choose: random.Random, pairs: Fields) -> tuple[bytes, bytes]:
    heads = [
        b"Content-Transfer-Encoding: base64\r\n",
        b"Content-Transfer-Encoding: quoted-printable\r\n",
        b"Content-Type: text/plain; charset=utf-16\r\n",
        b"Content-Type: text/plain; charset=zlib\r\n",
        b"Content-Type: multipart/mixed; boundary=x\r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"X: " + b"y" * 5000 + b"\r\n",
        b"Content-Disposition: form-data; name=twice\r\n",
        b" folded: x\r\n",
    ]
    spoiled = choose.randrange(len(pairs))
    parts = [_part(*pair, head=choose.choice(heads) if place == spoiled else b"") for place, pair in enumerate(pairs)]
    return MULTIPART, _multipart(parts)


def _other_line_ends(choose: random.Random, pairs: Fields) -> tuple[bytes, bytes]:
    return MULTIPART, _multipart([_part(*pair) for pair in pairs]).replace(b"\r\n", choose.choice([b"\n", b"\r"]))


def _spoiled_part(choose: random.Random, pairs: Fields) -> tuple[bytes, bytes]:
    spoiled = choose.randrange(len(pairs))
    parts = [
        _part(name, choose.choice(values.WORDS) if place == spoiled else value)
        for place, (name, value) in enumerate(pairs)
    ]
    return MULTIPART, _multipart([*parts, choose.choice(parts)])


_MULTIPART = [
    _other_boundary,
    _cut_off,
    _parts_missing,
    _texts_as_files,
    _encoded_parts,
    _other_line_ends,
    _spoiled_part,
]
