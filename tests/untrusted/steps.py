# SPDX-License-Identifier: BSD-2-Clause
"""Prints how long each parser that runs in the web server holds the interpreter, at the limit of its input.

    PYTHONPATH=perfweb/client python -m tests.untrusted.steps [--count] [PART-OF-A-NAME…]

CPython lets another thread run between two lines, every 5 ms (sys.getswitchinterval()), but not while one of them calls
C.  So the longest line is what a request can hold up other requests by at most; it is measured in CPU time of the
thread.  Texts are tried at a 256th of the limit first, and the slowest ones at the limit and at parts of it.  --count
also prints the instructions of the processor that the longest one takes, as callgrind counts them.
"""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import django

from perfweb import inputlimits as limits

django.setup()
from tests.untrusted.held import Step, longest_step, write_count  # noqa: E402
from tests.untrusted.hostile import GENERIC, Parser, call  # noqa: E402
from tests.untrusted.parsers import PARSERS  # noqa: E402

OUTPUT_BYTES = limits.MIB
"""Bytes that are kept of a program's output (playbooks/module_utils/supervision.py)."""
LIMITS = {
    "patch": limits.PATCH_BYTES,
    "patch as HTML": 100_000,
    "hunk": limits.PATCH_BYTES,
    "paths of a diff": limits.PATCH_BYTES,
    "plan": limits.PLAN_CHARACTERS,
    "plan of another size": limits.PLAN_CHARACTERS,
    "knobs": 8000,
    "request in a comment": limits.COMMENT_CHARACTERS,
    "JSON of a request": limits.REQUEST_BYTES,
    "body of an API request": limits.REQUEST_BYTES,
    "ID token": limits.PROVIDER_BYTES,
    "claims of an ID token": limits.PROVIDER_BYTES,
    "query string": limits.REQUEST_HEAD_BYTES,
    "value of a query parameter": limits.REQUEST_HEAD_BYTES,
    "window of a timeline": limits.REQUEST_HEAD_BYTES,
    "date or time": limits.REQUEST_HEAD_BYTES,
    "cookies": limits.REQUEST_HEAD_BYTES,
    "entity tags": limits.REQUEST_HEAD_BYTES,
    "date of HTTP": limits.REQUEST_HEAD_BYTES,
    "address of a repository": limits.REQUEST_HEAD_BYTES,
    "form": limits.FORM_BYTES,
    "form with files": limits.REQUEST_BYTES,
    "plain text": OUTPUT_BYTES,
    "counters": OUTPUT_BYTES,
    "histograms of durations": OUTPUT_BYTES,
    "profile of locks": OUTPUT_BYTES,
    "contention of locks": OUTPUT_BYTES,
    "columns of a profile of locks": OUTPUT_BYTES,
    **{f"delivery of {forge}": limits.WEBHOOK_BYTES for forge in ("github", "gitlab", "gitea")},
    **{parser.name: limits.REQUEST_HEAD_BYTES for parser in PARSERS if parser.name.startswith("header ")},
}
"""Parsers of the web server, with the limits of their inputs in bytes."""
SIFTED = 256
SLOWEST = 3
SIZES = (1, 2, 4, 8, 16, 32)
"""Parts of the limit: a text that has too many lines or parts at the limit is refused, and takes longest where it is
just not.
"""
_TOTALS = re.compile(r"^totals: (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """A parser: CPU seconds of the slowest call, and the longest step of all calls with the text that makes it."""

    parser: str
    seconds: float
    step: Step
    text: str
    size: int


def made(parser: Parser, name: str, size: int) -> str:
    """A hostile text of about so many bytes: one of so many characters may have four times as many."""
    text = {**GENERIC, **parser.texts}[name](size)
    length = len(text.encode("utf-8", "surrogatepass"))
    return text if length <= size else text[: len(text) * size // length]


def seconds(parser: Parser, text: str) -> float:
    """CPU seconds of a call."""
    start = time.thread_time()
    call(parser, text)
    return time.thread_time() - start


def held(parser: Parser, text: str) -> Step:
    """The longest step of a call."""
    return longest_step(lambda: call(parser, text))


def slowest_size(parser: Parser, name: str, limit: int) -> tuple[float, int]:
    """CPU seconds of a text of the size up to the limit that takes longest, and that size."""
    return max((seconds(parser, made(parser, name, limit // part)), limit // part) for part in SIZES)


def measure(parser: Parser, limit: int) -> Row:
    """Find the slowest texts at a part of the limit, and measure them up to the limit."""
    names = [*GENERIC, *parser.texts]
    small = {name: made(parser, name, max(limit // SIFTED, 1000)) for name in names}
    whole = {name: seconds(parser, text) for name, text in small.items()}
    steps = {name: held(parser, text).nanoseconds for name, text in small.items()}
    chosen = {
        name: slowest_size(parser, name, limit)
        for taken in (whole, steps)
        for name in sorted(names, key=lambda name: taken[name])[-SLOWEST:]
    }
    found = {name: held(parser, made(parser, name, size)) for name, (_, size) in chosen.items()}
    name = max(found, key=lambda name: found[name].nanoseconds)
    size = chosen[name][1]
    step = min(found[name], held(parser, made(parser, name, size)), key=lambda step: step.nanoseconds)
    return Row(parser.name, max(taken for taken, _ in chosen.values()), step, name, size)


def instructions(rows: list[Row]) -> list[int]:
    """The instructions of the processor in the longest steps, counted by this module under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        argv = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        requested = json.dumps([[row.parser, row.text, row.size, row.step.number] for row in rows])
        argv += [sys.executable, "-m", "tests.untrusted.steps", "--rows", requested]
        subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": "0"})
        dumps = [Path(folder, f"out.{number}") for number in range(1, len(rows) + 1)]
        return [int(_TOTALS.findall(dump.read_text(encoding="utf-8"))[0]) for dump in dumps]


def count(requested: list[tuple[str, str, int, int]]) -> None:
    """Under callgrind: count the instructions of steps, and have them written to a file each."""
    parsers = {parser.name: parser for parser in PARSERS}
    for name, text, size, number in requested:
        content = made(parsers[name], text, size)
        call(parsers[name], content)  # what is loaded or cached at first, as in measure()
        longest_step(lambda parser=parsers[name], content=content: call(parser, content), number)  # type: ignore[misc]
        write_count()


def main(words: list[str]) -> None:
    if words[:1] == ["--rows"]:
        gc.freeze()
        count(json.loads(words[1]))
        return
    names = [word for word in words if word != "--count"]
    gc.freeze()  # a collection goes through all objects of the process, whichever line it interrupts
    print(f"{'parser':29} {'limit':>8}  {'CPU time':>9}  {'held':>9}  in, for which text")
    rows = []
    for parser in PARSERS:
        limit = LIMITS.get(parser.name, 0)
        if limit and (not names or any(name in parser.name for name in names)):
            rows.append(row := measure(parser, limit))
            taken = f"{row.seconds * 1000:6.0f} ms  {row.step.nanoseconds / 1e6:6.1f} ms"
            print(
                f"{row.parser:29} {limit:8}  {taken}  {f'{row.step.place}, {row.size} of {row.text}'[:70]}", flush=True
            )
    if "--count" in words:
        for row, counted in zip(rows, instructions(rows), strict=True):
            print(f"{row.parser:29} {counted / 1e6:8.1f} million instructions in {row.step.place}")


if __name__ == "__main__":
    main(sys.argv[1:])
