# SPDX-License-Identifier: BSD-2-Clause
"""Texts that make parsers slow or fail, each as a function of its length in characters; and the type of a parser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Generator = Callable[[int], str]
Errors = tuple[type[Exception], ...]

RUNS = [
    "a", " ", "\t", "\n", "\r", "\r\n", " \n", "\n ", "\0", "\x0b", "\x1c", "\u2028", "\u0301", "\u202e", "\ud800", "é",
    "0", "9", "1.", "1,", "1 ", "1\n", "-", "--", "\n--", "\n--x", "---\n", "--- a\n", "--- a\n+++ b\n", "+", "=", "==",
    "a=", "a=b\n", "a: ", "a: b\n", ":", ";", ";a=", ",", ", ", "(", ")", "((", "()", "(\"", "[", "]", "[]", "[ ",
    "[PATCH ", "[PATCH 1/2] ", "{", "}", "{}", "{} ", "1 2 ", "{\"a\":", "[[", "[1,", "\\", "\\\"", "\"",
    "\"\"", "\"a\"",
    "'", "<", ">", "<@", "<a@", "<a@b> ", "@", "@@ ", "@@ -1 +1 @@\n", "@@ -1,999999999 +1,9 @@\n", "Re: ", "perf: ",
    "perf: run\n", "/perf ", "From ", "From 11:11 ", "From a 11:11 2001\n", "From: a\n", "11:11 ", "\nFrom ",
    ">From \n", "Subject: x\n", "=?utf-8?q?", "=?utf-8?q?a?= ", "=?x?b?", "=?", "?=", "=3D", "=\n", "diff --git a b\n",
    "base-commit: ", "GIT binary patch", "Binary files ", "```\n", "`", "``` ", "|", "&", "&a", "*", "- ", "- a\n",
    "&a [*a", "? ", "!!", "%", "%41", "|\n ", "a:\n ", "#", "#\n", "x,x\n", "VALUE 1 x y\n", "PASS ", "== ", "nan ",
    "inf\n",    "1e9", "NETPERF_INTERIM_RESULT=", "NETPERF_INTERIM_RESULT=1\nNETPERF_UNITS=", "load: 1 % ", "p50: 1 ",
    "rounds: 1 seconds: ", "sent: 1 seconds: 1", "took 1 to 2 us: 3\n", "== sample 1:, void: ", "MIME-Version: 1.0\n",
    "Content-Type: multipart/mixed; boundary=x\n\n--x\n", "Content-Type: message/rfc822\n\n", "X-A: b\n c\n",
]  # fmt: skip


def _run(piece: str) -> Generator:
    return lambda length: (piece * (length // len(piece) + 1))[:length]


def _numbered(form: str) -> Generator:
    """Repeats with different numbers, so that no two are the same."""
    return lambda length: "".join(form.replace("{0}", str(number)) for number in range(length // len(form) + 1))[
        :length
    ]


def _nested(begin: str, middle: str, end: str) -> Generator:
    def made(length: int) -> str:
        depth = length // (len(begin) + len(end))
        return begin * depth + middle + end * depth

    return made


_NUMBERED = ("k{0}: v\n", "k{0}=v\n", "{0},", "v{0} 1\n", "X-{0}: y\n", "<{0}@a> ")

GENERIC: dict[str, Generator] = {
    **{f"run of {piece!r}": _run(piece) for piece in RUNS},
    **{f"numbered {form!r}": _numbered(form) for form in _NUMBERED},
    "nested lists": _nested("[", "1", "]"),
    "nested objects": _nested('{"a":', "1", "}"),
    "nested comments": _nested("(", "a", ")"),
    "lists side by side": lambda length: "[" * 300 + ("[" * 100 + "]" * 100) * (length // 200),
    "opening of a string, then escapes": lambda length: '"' + '\\"' * (length // 2),
}


def within(before: str, after: str, *names: str) -> dict[str, Generator]:
    """Generic texts embedded in a parser's expected input; all of them, or those whose names have a prefix."""
    return {
        f"{before[:40]!r} … {name}": lambda length, made=generate: f"{before}{made(length)}{after}"  # type: ignore[misc]
        for name, generate in GENERIC.items()
        if not names or name.startswith(names)
    }


def repeated(before: str, piece: str, after: str = "") -> dict[str, Generator]:
    """A piece repeated in a parser's expected input; `{0}` in it is a growing number."""
    generate = _numbered(piece) if "{0}" in piece else _run(piece)
    return {f"{before[:40]!r} … {piece[:60]!r}": lambda length: f"{before}{generate(length)}{after}"}


_JSON_ITEMS = (
    "1234567,", "1.25e-9,", '"aaaaa",', '"\\u00e9a",', "[1      ],     ", "{}      ,       ", '{"a{0}": 1  },   ',
)  # fmt: skip
"""Items with one part, or two in twice as many bytes."""
DENSE_JSON: dict[str, Generator] = {
    name: generate for piece in _JSON_ITEMS for name, generate in repeated('{"a": [', piece, "1]}").items()
} | repeated("{", '"a{0}": 1, ', '"b": 1}')
"""As many parts as the body of a request may have (perfweb.inputlimits.REQUEST_JSON_PARTS)."""


@dataclass(frozen=True)
class Parser:
    """A parser; `texts` are hostile ones made for it, besides the generic ones that every parser gets."""

    name: str
    parse: Callable[[str], object]
    errors: Errors = ()
    texts: dict[str, Generator] = field(default_factory=dict)


def call(parser: Parser, text: str) -> Any:
    """The result of a parser, or the declared error."""
    try:
        return parser.parse(text)
    except parser.errors as error:
        return error
