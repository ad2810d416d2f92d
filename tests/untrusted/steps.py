# SPDX-License-Identifier: BSD-2-Clause
"""Prints how long each parser that runs in the web server holds the interpreter, at the limit of its input.

    python -m tests.untrusted.steps [PART-OF-A-NAME…]

CPython lets another thread run between two instructions of Python, every 5 ms (sys.getswitchinterval()), but not within
a call of a function in C. So the longest call in C is the longest delay of other requests by a request; it is measured
in CPU time of the thread, the min of three runs. Texts are tried at a sixteenth of the limit first, and the slowest
ones at the limit.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import django

from perfweb.inputlimits import PATCH_BYTES, PLAN_CHARACTERS, REQUEST_BYTES, REQUEST_HEAD_BYTES, WEBHOOK_BYTES

django.setup()
from tests.untrusted.hostile import GENERIC, Parser, call  # noqa: E402
from tests.untrusted.parsers import PARSERS  # noqa: E402

LIMITS = {
    "patch": PATCH_BYTES,
    "patch as HTML": 100_000,
    "plan": PLAN_CHARACTERS,
    "plan of another size": PLAN_CHARACTERS,
    "knobs": 8000,
    "JSON of a request": REQUEST_BYTES,
    "body of an API request": REQUEST_BYTES,
    "query string": REQUEST_HEAD_BYTES,
    "cookies": REQUEST_HEAD_BYTES,
    "form": REQUEST_BYTES,
    "form with files": REQUEST_BYTES,
    **{f"delivery of {forge}": WEBHOOK_BYTES for forge in ("github", "gitlab", "gitea")},
}
"""Parsers of requests, with the limits of their inputs in bytes."""
SLOWEST = 4


def held(parser: Parser, text: str) -> tuple[float, float, str]:
    """Seconds of CPU time of a call, those of its longest step in C, and the name of that function."""
    now = time.thread_time
    longest, name, begun = 0.0, "", 0.0

    def notice(_frame: Any, event: str, argument: Any) -> None:
        nonlocal longest, name, begun
        if event == "c_return" and now() - begun > longest:
            longest, name = now() - begun, getattr(argument, "__qualname__", str(argument))
        begun = now()

    start = now()
    call(parser, text)
    whole = now() - start
    sys.setprofile(notice)
    try:
        call(parser, text)
    finally:
        sys.setprofile(None)
    return whole, longest, name


def fitted(text: str, limit: int) -> str:
    """Return the beginning of a text with about `limit` bytes: a text with that many characters may have four times as
    many bytes, which no request may have.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    return text if size <= limit else text[: len(text) * limit // size]


def worst(parser: Parser, limit: int, key: Callable[[tuple[float, float, str]], float]) -> tuple[tuple[Any, ...], str]:
    """The largest measurement of the hostile texts, and the name of the text."""
    texts = {**GENERIC, **parser.texts}
    first = {name: held(parser, fitted(generate(limit // 16), limit // 16)) for name, generate in texts.items()}
    slowest = sorted(first, key=lambda name: key(first[name]), reverse=True)[:SLOWEST]
    final = {
        name: min((held(parser, fitted(texts[name](limit), limit)) for _ in range(3)), key=key) for name in slowest
    }
    name = max(final, key=lambda name: key(final[name]))
    return final[name], name


def main(words: list[str]) -> None:
    print(f"{'parser':26} {'limit':>8}  {'CPU time':>9}  {'held':>9}  in, for which text")
    for parser in PARSERS:
        limit = LIMITS.get(parser.name, 0)
        if limit and (not words or any(word in parser.name for word in words)):
            (whole, _, _), _ = worst(parser, limit, lambda found: found[0])
            (_, step, function), text = worst(parser, limit, lambda found: found[1])
            shown = f"{function}, {text}"
            print(
                f"{parser.name:26} {limit:8}  {whole * 1000:6.0f} ms  {step * 1000:6.1f} ms  {shown[:70]}", flush=True
            )


if __name__ == "__main__":
    main(sys.argv[1:])
