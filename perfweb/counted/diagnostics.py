# SPDX-License-Identifier: BSD-2-Clause
"""What a compiler and a linker print: warnings, and the lines that name why a build failed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SHOWN_ERRORS = 3
LAST_LINES = 8
CONTEXT_LINES = 6
_GCC = re.compile(
    r"(?P<path>[^\s:][^:]{0,500}):(?P<line>\d{1,9}):(?:\d{1,9}:)? (?P<kind>warning|error|fatal error): (?P<text>.*)"
)
_OBJTOOL = re.compile(r"(?P<path>[^\s:]{1,500}\.o): (?P<kind>warning): (?P<text>objtool: .*)")
_OTHERS = (
    "undefined reference to", "multiple definition of", "ERROR: ", "FAILED: ", "No rule to make target",
)  # fmt: skip
"""Texts of the lines in which the linker, modpost and make name what is wrong."""
_WHERE = re.compile(r"^(?:\.\./)+(?:source/)?|^.*?/source/")


@dataclass(frozen=True)
class Diagnostic:
    """A message about a file of the kernel; `lines` are the message and the source lines that the compiler shows."""

    path: str
    line: int
    kind: str
    text: str
    lines: tuple[str, ...]

    @property
    def identity(self) -> str:
        """What stays the same if lines move: the file and the message."""
        return f"{self.path}: {self.text}"

    def __str__(self) -> str:
        return "\n".join(self.lines)


def diagnostics(printed: str) -> list[Diagnostic]:
    """Returns the messages of gcc and objtool, with paths relative to the sources."""
    found: list[Diagnostic] = []
    lines = printed.split("\n")
    for number, line in enumerate(lines):
        match = _GCC.fullmatch(line) or _OBJTOOL.fullmatch(line)
        if match is None:
            continue
        path = _WHERE.sub("", match["path"])
        about = match.groupdict().get("line")
        shown = f"{path}:{about}: {match['kind']}: {match['text']}" if about else f"{path}: {match['text']}"
        context = []
        for following in lines[number + 1 : number + 1 + CONTEXT_LINES]:
            if not following.startswith(" "):
                break
            context.append(following.rstrip())
        found.append(Diagnostic(path, int(about or 0), match["kind"], match["text"], (shown, *context)))
    return found


def warnings(printed: str) -> list[Diagnostic]:
    """Returns the warnings, each once."""
    found = {one.identity: one for one in reversed(diagnostics(printed)) if one.kind == "warning"}
    return list(reversed(found.values()))


def new_warnings(known: Iterable[str], printed: str) -> list[Diagnostic]:
    """Returns the warnings whose identity is not among the known ones."""
    before = set(known)
    return [one for one in warnings(printed) if one.identity not in before]


def reason(printed: str) -> str:
    """Returns the lines that name why a build failed: the compiler's first errors, else the linker's, else the last."""
    errors = [str(one) for one in diagnostics(printed) if one.kind != "warning"]
    if not errors:
        errors = [line for line in printed.split("\n") if any(text in line for text in _OTHERS)]
    if errors:
        return "\n".join(errors[:SHOWN_ERRORS])
    return "\n".join(line for line in printed.rstrip().split("\n")[-LAST_LINES:])
