# SPDX-License-Identifier: BSD-2-Clause
"""The stack's lock annotations: `python -m tests.stack.locking [count | check]`.

    count    print how many fields are guarded, and each function that is not analysed
    check    have clang-tidy check the annotations in every source of the clang build

A comment that begins with a letter in brackets names the lock of the field on its line, or of the next one if the
comment has a line of its own.  The field has the attribute GUARDED_BY() too, so that Clang's thread safety analysis can
check it, unless the letter is not that of a lock.  See https://clang.llvm.org/docs/ThreadSafetyAnalysis.html.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.stack.builds import ROOT, configure, locked, run

STACK = ROOT / "stack"
BUILD = "clang"
GUARDED_MIN = 264
"""Fields with the attribute: raise it with each new one."""
EXCEPTIONS_MAX = 20
"""Functions that are not analysed: lower it with each removed one."""
UNGUARDED_MAX = 0
"""Fields with a lock's letter and no attribute: lower it, to 0."""
UNVERIFIED_MAX = 74
"""Statements about a lock that neither the analysis nor a build verifies."""
NO_LOCK = {
    "I": "immutable",
    "a": "atomic",
    "o": "used by its owner thread only",
    "v": "reached only through a field that is guarded",
}
OWNERS = {
    "dev/mem_wire.c": "p",
    "kern/lock_track.h": "w",
    "kern/watchdog.c": "w",
    "kern/worker.h": "s",
    "netinet/in_pcbthread.c": "nw",
}
"""Letters of a file that name a thread, not a lock."""
ANALYSIS = (
    "-DLOCK_ANALYSIS",
    "-Wthread-safety",
    "-Wthread-safety-pointer",
    "-Wthread-safety-beta",
    "-fexperimental-late-parse-attributes",
    "-Wno-unknown-warning-option",
)
CHECKS = "-*,clang-diagnostic-thread-safety*,clang-diagnostic-error"
LETTER = re.compile(r"/\* (?:\w[\w ,]* )?\[(?P<letter>[a-zI])\]")
ABOVE = re.compile(r"^\s*/\*$|^\s*/\* \[")
EXCEPTION = re.compile(r"\bNO_LOCK_ANALYSIS\b")
UNVERIFIED = re.compile(
    r"^(?!#).*\b(?P<name>(?:mtx|rw)_(?:private|stable)|role_(?:assert|take|drop)(?:_shared)?)\((?!struct|const)",
    re.MULTILINE,
)
"""Statements about a lock that the analysis assumes and no build verifies."""
ATTRIBUTE = r"(?:REQUIRES|ACQUIRES|RELEASES)(?:_SHARED)?\((?:[^()]|\([^()]*\))*\)"
ATTRIBUTES = rf"(?P<attributes>(?:\s+(?:{ATTRIBUTE}|NO_LOCK_ANALYSIS))*)"
ARGUMENTS = r"\((?P<arguments>(?:[^(){};]|\([^(){};]*\))*)\)"
DEFINITION = re.compile(rf"^(?P<type>\w[\w *]*)\n(?P<name>\w+){ARGUMENTS}{ATTRIBUTES}\n{{", re.MULTILINE)
PROTOTYPE = re.compile(rf"\b(?P<name>\w+){ARGUMENTS}{ATTRIBUTES};")
FUNCTION = re.compile(r"^(?P<name>\w+)\(", re.MULTILINE)


class Field(NamedTuple):
    """A declaration with a letter."""

    place: str  # path in stack/ and line
    letter: str
    declaration: str

    @property
    def guarded(self) -> int:
        """How many declarators have the attribute."""
        return self.declaration.count("GUARDED_BY(")

    @property
    def needs_lock(self) -> bool:
        """Whether the letter names a lock."""
        path = self.place.partition(":")[0]
        return self.letter not in NO_LOCK and self.letter not in OWNERS.get(path, "")


def sources(root: Path = STACK) -> Iterator[Path]:
    """The annotated files: all above machine/, whose locks are the host's, without tests and tools."""
    for path in sorted(root.rglob("*.[ch]")):
        if path.relative_to(root).parts[0] not in ("machine", "tests", "tools"):
            yield path


def fields_of(path: str, text: str) -> Iterator[Field]:
    """The declarations of a file that have a letter."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if found := LETTER.search(line):
            alone = not line[: found.start()].strip()
            declaration = _declaration(lines, _comment_end(lines, number) + 1) if alone else _before(lines, number)
            if declaration:
                yield Field(f"{path}:{number + 1}", found["letter"], declaration)


def _comment_end(lines: Sequence[str], number: int) -> int:
    while "*/" not in lines[number]:
        number += 1
    return number


def _declaration(lines: Sequence[str], number: int) -> str:
    """The declaration that begins on a line; "" for the head of a structure, whose comment explains its letters."""
    words = ""
    for line in lines[number : number + 4]:
        words += line.strip() + " "
        if line.rstrip().endswith("{") or not line.strip():
            return ""
        if ";" in line:
            return words
    return ""


def _before(lines: Sequence[str], number: int) -> str:
    """The declaration that ends on a line; it may begin on the line before."""
    code = lines[number].partition("/*")[0]
    return lines[number - 1] + code if code.startswith((" ", "\t ")) and code.lstrip()[:1].isupper() else code


def fields(root: Path = STACK) -> Iterator[Field]:
    """Every field with a letter."""
    for path in sources(root):
        yield from fields_of(str(path.relative_to(root)), path.read_text(encoding="utf-8"))


def guarded(root: Path = STACK) -> int:
    """How many fields and variables have the attribute."""
    texts = (path.read_text(encoding="utf-8") for path in sources(root) if path.name != "annotate.h")
    return sum(text.count("GUARDED_BY(") for text in texts)


def exceptions(root: Path = STACK) -> Iterator[str]:
    """Every function that is not analysed, with its file."""
    for path in sources(root):
        text = path.read_text(encoding="utf-8")
        for found in EXCEPTION.finditer(text):
            if names := FUNCTION.findall(text, 0, found.start()):
                yield f"{path.relative_to(root)}: {names[-1]}"


def unguarded(root: Path = STACK) -> list[Field]:
    """Fields whose letter is that of a lock but that have no attribute."""
    return [field for field in fields(root) if field.needs_lock and not field.guarded]


def unverified(root: Path = STACK) -> Counter[str]:
    """The number of statements of each kind that the analysis assumes."""
    texts = (path.read_text(encoding="utf-8") for path in sources(root))
    return Counter(found["name"] for text in texts for found in UNVERIFIED.finditer(text))


def _attributes(function: re.Match[str]) -> set[str]:
    """The lock attributes of a function, with parameters by position."""
    text = re.sub(r"\s+", "", function["attributes"])
    for number, argument in enumerate(function["arguments"].split(",")):
        if name := re.search(r"(\w+)\W*$", argument):
            text = re.sub(rf"\b(?<!\.)(?<!->){name[1]}\b", f"${number}", text)
    return {
        f"{found[1]}({lock})"
        for found in re.finditer(r"([A-Z_]+)\(((?:[^()]|\([^()]*\))*)\)", text)
        for lock in found[2].split(",")
    }


def differing(root: Path = STACK) -> Iterator[str]:
    """Functions whose definition has lock attributes that the prototype in a header lacks, so callers miss them."""
    prototypes: dict[str, set[str]] = {}
    for path in root.rglob("*.h"):
        for found in PROTOTYPE.finditer(path.read_text(encoding="utf-8")):
            prototypes.setdefault(found["name"], set()).update(_attributes(found))
    for path in sources(root):
        if path.suffix != ".c":
            continue
        for found in DEFINITION.finditer(path.read_text(encoding="utf-8")):
            missing = _attributes(found) - prototypes.get(found["name"], set())
            if missing and "static" not in found["type"].split():
                yield f"{path.relative_to(root)}: {found['name']}: {' '.join(sorted(missing))}"


def tidy(source: Path, directory: Path, flags: Sequence[str] = ()) -> str:
    """The output of clang-tidy for a source, compiled with flags or by compile_commands.json in `directory`."""
    words = [str(ROOT / ".venv" / "bin" / "clang-tidy"), "--allow-no-checks", "--quiet", f"--checks={CHECKS}"]
    words += [f"--extra-arg={word}" for word in ANALYSIS]
    end = ["--", *flags] if flags else []
    begin = [] if flags else ["-p", str(directory)]
    done = subprocess.run([*words, *begin, str(source), *end], capture_output=True, text=True, check=False)
    if done.returncode != 0 and "[clang-diagnostic" not in done.stdout:
        raise RuntimeError(f"clang-tidy {source}: exit status {done.returncode}: {done.stderr}")
    return done.stdout


def compiled(directory: Path) -> list[Path]:
    """The sources of the stack that a build compiles."""
    commands = json.loads((directory / "compile_commands.json").read_text(encoding="utf-8"))
    paths = {Path(directory, command["file"]).resolve() for command in commands}
    return sorted(path for path in paths if path in set(sources()))


def check() -> int:
    """Checks all sources; the exit status."""
    with locked(ROOT / "build" / BUILD):
        directory = configure(BUILD)
        run("ninja", "-C", str(directory), "--quiet", "build.ninja")
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        reports = list(pool.map(lambda path: tidy(path, directory), compiled(directory)))
    wrong = dict.fromkeys(report for report in reports if report)  # those of a header are reported with each source
    print("".join(wrong), end="")
    return 1 if wrong else 0


def count() -> int:
    """Prints the numbers; the exit status is 1 if they exceed the limits above."""
    missing = unguarded()
    excepted = list(exceptions())
    print(f"guarded fields and variables: {guarded()} (min {GUARDED_MIN})")
    print(f"fields with a lock letter and no attribute: {len(missing)} (max {UNGUARDED_MAX})")
    for field in missing:
        print(f"    stack/{field.place}: [{field.letter}] {' '.join(field.declaration.split())}")
    print(f"functions that are not analysed: {len(excepted)} (max {EXCEPTIONS_MAX})")
    for name in excepted:
        print(f"    stack/{name}")
    statements = unverified()
    print(f"statements about a lock that nothing verifies: {statements.total()} (max {UNVERIFIED_MAX})")
    for kind, number in sorted(statements.items()):
        print(f"    {kind}: {number}")
    letters = Counter(field.letter for field in fields() if not field.needs_lock)
    for letter, number in sorted(letters.items()):
        print(f"fields of no lock, [{letter}] {NO_LOCK.get(letter, 'used by one thread only')}: {number}")
    worse = len(missing) > UNGUARDED_MAX or guarded() < GUARDED_MIN or len(excepted) > EXCEPTIONS_MAX
    return int(worse or statements.total() > UNVERIFIED_MAX)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="tests.stack.locking", description="Count or check the lock annotations.")
    parser.add_argument("verb", nargs="?", choices=("count", "check"), default="count")
    return check() if parser.parse_args(arguments).verb == "check" else count()


if __name__ == "__main__":
    sys.exit(main())
