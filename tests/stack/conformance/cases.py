# SPDX-License-Identifier: BSD-2-Clause
"""The cases of a file of scripts: plain text of packetdrill's language, made from a few more kinds of lines.

    let NAME VALUE              $NAME means VALUE from here on, $(NAME+1) the sum
    include PART                the lines of parts/PART.pkt
    families ipv4 ipv6          run with these only (default: all)
    == NAME [each VAR in A B]   a case: what precedes the first case, and the lines up to the next one

A file without cases is one case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

FAMILIES = ("ipv4", "mapped", "ipv6")
_CASE = re.compile(r"== (?P<name>[\w$.+-]+)(?: each (?P<var>\w+) in (?P<values>[^/]+))?\s*(?P<comment>//.*)?$")
_NAME = re.compile(r"\$(\w+)")
_SUM = re.compile(r"\$\(([\w+-]+)\)")
_TERM = re.compile(r"([+-]?)(\w+)")
_RFC = re.compile(r"RFC (\d+)")
_CLAUSE = re.compile(r" ?(?:sections? )?(\d+(?:\.\d+)*|(?:MUST|SHLD|MAY|REC)-\d+)\b(?:,| and)?")


@dataclass(frozen=True)
class Case:
    """A script with a name, its lines as (line number of the file, text), and the families it runs with."""

    name: str
    lines: tuple[tuple[int, str], ...]
    families: tuple[str, ...]
    pattern: str  # its name, with * for the value of `each`

    @property
    def text(self) -> str:
        """The script as packetdrill reads it."""
        return "".join(f"{line}\n" for _, line in self.lines)

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses that its comments name, each once."""
        return tuple(dict.fromkeys(clauses(self.text)))


def clauses(text: str) -> Iterator[str]:
    """The clauses that comments name: "RFC 9293 3.8.4, MUST-15" yields "RFC 9293 3.8.4" and "RFC 9293 MUST-15"."""
    for line in text.splitlines():
        comment = line.partition("//")[2]
        for found in _RFC.finditer(comment):
            end = found.end()
            while clause := _CLAUSE.match(comment, end):
                yield f"RFC {found[1]} {clause[1]}"
                end = clause.end()


def _substitute(line: str, names: dict[str, str]) -> str:
    def term(found: re.Match[str]) -> int:
        value = int(names.get(found[2], found[2]))
        return -value if found[1] == "-" else value

    line = _SUM.sub(lambda found: str(sum(term(each) for each in _TERM.finditer(found[1]))), line)
    return _NAME.sub(lambda found: names[found[1]], line)


class _Expansion:
    """The lines of one case."""

    def __init__(self, parts: Path, names: dict[str, str]) -> None:
        self.parts, self.names = parts, names
        self.lines: list[tuple[int, str]] = []
        self.families: tuple[str, ...] = FAMILIES

    def add(self, number: int, line: str) -> None:
        word, _, rest = line.partition(" ")
        if "$" in line and not line.startswith("//"):
            rest = _substitute(rest, self.names)
            line = f"{_substitute(word, self.names)} {rest}"
        if word == "let":
            name, value = rest.split()
            self.names[name] = value
        elif word == "families":
            self.families = tuple(rest.split())
        elif word == "include":
            for included in (self.parts / f"{rest.strip()}.pkt").read_text(encoding="utf-8").splitlines():
                self.add(number, included)
        else:
            self.lines.append((number, line))


def read(path: Path) -> Iterator[Case]:
    """The cases of a file; ValueError names a line that is wrong."""
    lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    starts = [index for index, (_, line) in enumerate(lines) if line.startswith("== ")]
    prelude = lines[: starts[0]] if starts else lines
    parts = next((each / "parts" for each in path.parents if (each / "parts").is_dir()), path.parent)
    if not starts:
        yield _expand(path.stem, parts, {}, prelude)
        return
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        number, line = lines[start]
        header = _CASE.match(line)
        if header is None:
            raise ValueError(f"{path}:{number}: not a case: {line}")
        for value in (header["values"] or "").split() or [""]:
            names = {header["var"]: value} if value else {}
            body = [*prelude, (number, header["comment"] or ""), *lines[start + 1 : end]]
            name = _substitute(header["name"], names)
            pattern = re.sub(rf"\${header['var']}\b", "*", header["name"])
            yield replace(_expand(f"{path.stem}/{name}", parts, names, body), pattern=f"{path.stem}/{pattern}")


def _expand(name: str, parts: Path, names: dict[str, str], lines: list[tuple[int, str]]) -> Case:
    expansion = _Expansion(parts, dict(names))
    for number, line in lines:
        try:
            expansion.add(number, line)
        except (KeyError, OSError, ValueError) as error:
            raise ValueError(f"{name}: line {number}: {line}: {error}") from error
    return Case(name, tuple(expansion.lines), expansion.families, name)


def read_folder(folder: Path) -> Iterator[Case]:
    """The cases of all files below a folder but of its parts; names are relative to the folder."""
    for path in sorted(folder.rglob("*.pkt")):
        if path.parent.name != "parts":
            for case in read(path):
                below = path.parent.relative_to(folder)
                yield replace(case, name=str(below / case.name), pattern=str(below / case.pattern))
