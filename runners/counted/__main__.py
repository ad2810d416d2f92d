# SPDX-License-Identifier: BSD-2-Clause
"""`./dev kernel`: what patches of the Linux kernel cost, function by function, counted without a lab.

    ./dev kernel --base TREE [--commit NAME] PATCH ...
    ./dev kernel --base TREE - <MAIL

Exit status: 0 if no load costs more, 1 if one does, 2 for an error: a patch that does not apply, build or boot.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from perfweb.counted.comparison import Verdict
from perfweb.counted.configurations import NAMES
from runners.counted import loads, page, table
from runners.counted.command import Request, Result, run
from runners.counted.errors import CountedError
from runners.counted.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
MORE, FAILED = 1, 2


def parser() -> argparse.ArgumentParser:
    """Returns the command line."""
    made = argparse.ArgumentParser(
        prog="./dev kernel",
        description="Counts the instructions that patches of the Linux kernel add, function by function. Builds and "
        "boots both kernels in QEMU with the rights of the caller.",
        epilog="Exit status: 0 if no load costs more, 1 if one does, 2 for an error.",
    )
    made.add_argument(
        "patches", metavar="PATCH", nargs="+", help="a diff, a mail, or an mbox with a series; - reads it"
    )
    made.add_argument(
        "--base", metavar="TREE", type=Path, required=True, help="sources of Linux: a clone or a directory"
    )
    made.add_argument("--commit", metavar="NAME", default="HEAD", help="commit of the clone (HEAD)")
    made.add_argument(
        "--config",
        metavar="NAME",
        action="append",
        default=[],
        help=f"more options of the kernel: {', '.join(NAMES)}, an option, or a file; repeatable",
    )
    made.add_argument("--only", metavar="PREFIX", default="", help="only loads whose names begin so: tcp.rr/local")
    made.add_argument("--boots", metavar="N", type=_count, default=3, help="boots of each kernel (3)")
    made.add_argument("--limit", metavar="SECONDS", type=_seconds, default=120.0, help="max seconds of a boot (120)")
    made.add_argument("--json", metavar="FILE", type=Path, help="also write the comparison to FILE")
    made.add_argument("--html", metavar="FILE", type=Path, help="also write a page to FILE, of a failure, too")
    return made


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 20:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to 20")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 1 <= number <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 1 to 86400")
    return number


def _content(name: str) -> bytes:
    """Returns a patch by the name of its file, or that on standard input. Raises CountedError."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CountedError(f"{name} cannot be read: {error.strerror}") from None


def _base(options: argparse.Namespace) -> str:
    """Returns the name of the base for a page: the directory, with a commit that the user has named."""
    name: str = options.base.absolute().name
    return name if options.commit == "HEAD" else f"{name} {options.commit}"


def _problem(file: Path) -> str:
    """Returns why a file cannot be written, as far as that is known before."""
    if file.is_dir():
        return f"{file} is a directory: name a file"
    parent = file.absolute().parent
    return "" if parent.is_dir() else f"there is no directory {parent}"


def _write(file: Path, text: str) -> bool:
    """Writes a file; prints the reason if that fails."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"{file} cannot be written: {error.strerror}", file=sys.stderr)
        return False
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = parser().parse_args(argv)
    for option, file in (("--json", options.json), ("--html", options.html)):
        if file and (problem := _problem(file)):
            print(f"{option}: {problem}", file=sys.stderr)
            return FAILED
    var = Path(os.environ.get("PERFWEB_VAR", ROOT / "var")) / "counted"
    about = page.About([Path(name).name for name in options.patches], _base(options), options.boots)
    try:
        patches = [(name, _content(name)) for name in options.patches]
        request = Request(
            options.base, patches, var.absolute(), options.commit, options.config,
            loads.prefix(options.only), options.boots, options.limit,
        )  # fmt: skip
        result = run(request, Progress(sys.stderr))
    except CountedError as error:
        print(f"\n{error}", file=sys.stderr)
        if options.html:
            _write(options.html, page.of_failure(about, error))
        return FAILED
    except OSError as error:
        print(f"\n{error}", file=sys.stderr)
        return FAILED
    return report(options, about, result)


def report(options: argparse.Namespace, about: page.About, result: Result) -> int:
    """Prints a comparison, then writes it to the files that the user has named; returns the exit status."""
    for warning in result.warnings:
        print(f"new warning: {warning}")
    print("\n".join(table.lines(result.loads, options.boots)), flush=True)
    written = True
    if options.json:
        written &= _write(options.json, json.dumps(table.document(result)))
    if options.html:
        written &= _write(options.html, page.of_result(about, result))
    if not written:
        return FAILED
    return MORE if any(load.verdict == Verdict.MORE for load in result.loads) else 0


if __name__ == "__main__":
    sys.exit(main())
