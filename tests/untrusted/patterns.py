# SPDX-License-Identifier: BSD-2-Clause
"""Finds the regular expressions in the source of the service, and how each is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("perfweb", "runners", "playbooks")
_ANCHORED = {"match", "fullmatch"}
_METHODS = {*_ANCHORED, "search", "findall", "finditer", "split", "sub", "subn"}
_PASSED_TO = "matching"
"""The method of perfweb.yamlnodes.Field that calls fullmatch() of the pattern that it gets."""


@dataclass(frozen=True)
class Use:
    """A pattern of the source: its place, its name if it has one, and whether it is searched for or must match up to
    the end. `pattern` is None if the source computes it.
    """

    where: str
    name: str
    pattern: re.Pattern[Any] | None
    search: bool = True
    full: bool = True


def uses() -> Iterator[Use]:
    """All patterns of the service."""
    nodes = {
        path.relative_to(ROOT): list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "migrations" not in path.parts
    }
    methods: dict[tuple[str, str], set[str]] = {}
    for path, found in nodes.items():
        for name, method in _calls(str(path), found):
            methods.setdefault(name, set()).add(method)
    for path, found in nodes.items():
        for use in _of_file(str(path), found):
            called = methods.get((str(path), use.name), {"search"})
            yield replace(use, search=bool(called - _ANCHORED), full="fullmatch" in called) if use.name else use


Name = tuple[str, str]
"""A name in upper case, after the file that defines it."""


@dataclass(frozen=True)
class _File:
    """A source file with what it imports by name: the module, and its name there."""

    path: str
    imported: dict[str, tuple[str, str]]

    def name(self, node: ast.AST) -> Name | None:
        """The name that an expression refers to, None if that is no name in upper case."""
        if isinstance(node, ast.Name) and node.id.isupper():
            module, name = self.imported.get(node.id, (self.path.removesuffix(".py"), node.id))
            return f"{module}.py", name
        if isinstance(node, ast.Attribute) and node.attr.isupper() and isinstance(node.value, ast.Name):
            return f"{'/'.join(self.imported.get(node.value.id, ('', '')))}.py", node.attr
        return None


def _calls(path: str, nodes: Sequence[ast.AST]) -> Iterator[tuple[Name, str]]:
    """Names with the methods of patterns that are called on them, by all nodes of a file."""
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    file = _File(
        path,
        {
            alias.asname or alias.name: (str(node.module).replace(".", "/"), alias.name)
            for node in imports
            for alias in node.names
        },
    )
    known = set[ast.AST]()
    for node in nodes:
        for used, method in _methods(node):
            known.add(used)
            if name := file.name(used):
                yield name, method
    for node in nodes:
        if isinstance(node, ast.Name | ast.Attribute) and node not in known and isinstance(node.ctx, ast.Load):
            yield from ((name, "passed on") for name in [file.name(node)] if name)


def _methods(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.Attribute) and node.attr in _METHODS:
        yield node.value, node.attr
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "match" and len(node.args) > 1:
            yield node.func.value, "search"  # from place to place
        if node.func.attr == _PASSED_TO:
            yield node.args[0], "fullmatch"


def _of_file(path: str, nodes: Sequence[ast.AST]) -> Iterator[Use]:
    texts: dict[str, Any] = {}
    names: dict[ast.expr, str] = {}
    assert isinstance(nodes[0], ast.Module)
    for node in nodes[0].body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names[node.value] = node.targets[0].id
            texts[node.targets[0].id] = _constant(node.value, texts)
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        function = call.func
        if not isinstance(function, ast.Attribute) or not _is_re(function.value):
            continue
        where = f"{path}:{call.lineno}"
        if function.attr == "compile":
            yield Use(where, names.get(call, ""), _compiled(call, 1, texts))
        elif function.attr in _METHODS:
            place = {"sub": 4, "subn": 4, "split": 3}.get(function.attr, 2)
            search, full = function.attr not in _ANCHORED, function.attr == "fullmatch"
            yield Use(where, "", _compiled(call, place, texts), search, full)


def _is_re(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "re"


def _compiled(call: ast.Call, place: int, texts: dict[str, Any]) -> re.Pattern[Any] | None:
    """The pattern of a call whose flags are the positional argument `place`, or that of the same name."""
    text = _constant(call.args[0], texts)
    named = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    flags = [*call.args[place : place + 1], *named]
    if text is None:
        return None
    return re.compile(text, eval(ast.unparse(flags[0]), {"re": re}) if flags else 0)  # noqa: S307 (of our own source)


def _constant(node: ast.expr, texts: dict[str, Any]) -> Any:
    """The text of a constant, or of a literal with names of constants in it; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value
    if isinstance(node, ast.Name):
        return texts.get(node.id)
    if isinstance(node, ast.JoinedStr):
        parts = [_constant(part.value if isinstance(part, ast.FormattedValue) else part, texts) for part in node.values]
        return None if None in parts else "".join(parts)
    return None
