# SPDX-License-Identifier: BSD-2-Clause
"""Counts the characters that operations in C read and write for Python code.

A line of Python can copy or search a whole text in C: `text = text[1:]`, `word in text`, `text.replace(…)`,
`found.insert(0, …)`. No instruction counter is available on every machine. So the code of the measured modules is
compiled anew, with each such operation replaced by a call of a function below, which executes it and adds up its cost:
the characters that it searches, and the items that it copies or moves. Results stay the same.

Not counted: work of a C function beyond one pass over its arguments. test_patterns.py decides that for `re`, and int()
refuses more than 4300 digits
(https://docs.python.org/3.11/library/stdtypes.html#integer-string-conversion-length-limitation).
"""

from __future__ import annotations

import ast
import builtins
import gc
import operator
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

OWN = ("perfweb.", "runners.", "module_utils.", "ansible.module_utils.perfweb")
LIBRARIES = (
    *("email.", "csv", "urllib.parse", "yaml.", "http.cookies", "configparser", "shlex", "html.parser"),
    *("django.http.", "django.utils.datastructures", "django.utils.dateparse", "django.utils.text"),
)
"""Libraries in Python that the parsers use."""

FILE = __file__
SIZED = (str, bytes, bytearray, list, tuple, deque, dict, set, frozenset)
_TEXT = (str, bytes, bytearray)
_COPIED = (*_TEXT, list, tuple)
_LISTS = (list, deque)
_FOUND = {"find", "index", "rfind", "rindex", "count"}
_BUILTINS = {
    *("int", "float", "str", "bytes", "bytearray", "list", "tuple", "set", "frozenset", "dict", "sorted", "sum", "min"),
    *("max", "any", "all", "repr", "hash", "deque", "Counter", "StringIO", "BytesIO", "reversed"),
}
_CONSTANT_TIME = {"append", "get", "items", "keys", "values", "setdefault", "add", "popleft", "appendleft", "update"}


class Meter:
    """The cost of the measured code since the last reset."""

    def __init__(self) -> None:
        self.characters = 0

    def method(self, owner: Any, name: str, /, *given: Any, **named: Any) -> Any:
        """Call a method."""
        before = len(owner) if isinstance(owner, SIZED) else 0
        made = getattr(owner, name)(*given, **named)
        if isinstance(owner, _TEXT):
            self.characters += _text_cost(owner, name, given, made)
        elif isinstance(owner, _LISTS):
            self.characters += _list_cost(owner, name, given, before)
        elif isinstance(owner, re.Pattern):
            self.characters += _match_cost(name, given, made)
        elif isinstance(owner, re.Match):
            self.characters += _size(made)
        elif owner is re:
            self.characters += _size(given[-1] if len(given) < 3 else given[2] if name == "sub" else given[1])
        elif not isinstance(getattr(owner, name, None), FunctionType):
            self.characters += sum(map(_size, given)) + _size(made)
        return made

    def call(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
        """Call a function that passes over its arguments once."""
        self.characters += sum(map(_size, given))
        return function(*given, **named)

    def contains(self, place: Any, wanted: Any) -> bool:
        """Search a text or a list, whose items are compared one by one."""
        if isinstance(place, _COPIED):
            self.characters += _size(place)
        return wanted in place

    def equal(self, one: Any, other: Any) -> Any:
        """Compare two values."""
        if isinstance(one, _COPIED) and isinstance(other, _COPIED) and len(one) == len(other):
            self.characters += len(one)
        return one == other

    def part(self, owner: Any, place: Any) -> Any:
        """Copy a part."""
        return self.copied(owner[place])

    def added(self, one: Any, other: Any) -> Any:
        """Join two values in a new one."""
        return self.copied(one + other)

    def repeated(self, one: Any, other: Any) -> Any:
        """Repeat a text or a list."""
        return self.copied(one * other)

    def extended(self, one: Any, other: Any) -> Any:
        """Extend a value by another: a text is copied whole."""
        self.characters += _size(other) if isinstance(one, _LISTS) else 0
        made: Any = operator.iadd(one, other)  # type: ignore[no-untyped-call]
        return self.copied(made) if isinstance(made, (*_TEXT, tuple)) else made

    def copied(self, made: Any) -> Any:
        """Count the cost of a result."""
        if isinstance(made, _COPIED):
            self.characters += len(made)
        return made


METER = Meter()


def _size(value: Any) -> int:
    return len(value) if isinstance(value, SIZED) else 0


def _text_cost(owner: Any, name: str, given: tuple[Any, ...], made: Any) -> int:
    if name in {"startswith", "endswith"}:
        return sum(map(len, given[0])) if isinstance(given[0], tuple) else len(given[0])
    if name == "join":
        return _size(made)
    if name not in _FOUND:
        return len(owner) + (_size(made) if isinstance(made, _TEXT) else 0)
    start, end, _ = slice(*(*given[1:3], None, None)[:2]).indices(len(owner))
    if name == "count" or made < 0:
        return max(0, end - start)
    return int(end - made if name.startswith("r") else made - start + len(given[0]))


def _list_cost(owner: Any, name: str, given: tuple[Any, ...], before: int) -> int:
    if name in {"insert", "pop"}:
        if not given:
            return 0
        place = int(given[0]) if given[0] >= 0 else before + int(given[0])
        return max(0, before - place)
    return _size(given[0]) if name == "extend" else 0 if name in _CONSTANT_TIME else before


def _match_cost(name: str, given: tuple[Any, ...], made: Any) -> int:
    """Characters that a match has read; one that fails at its place reads no more than a constant (ambiguity.py)."""
    start = int(given[1]) if len(given) > 1 and name in {"match", "search", "fullmatch"} else 0
    if isinstance(made, re.Match):
        return int(made.end()) - start
    return 0 if name in {"match", "fullmatch"} else max(0, _size(given[-1 if name in {"sub", "subn"} else 0]) - start)


_METHODS = {
    name
    for kind in (str, bytes, list, deque, re.Pattern, re.Match)
    for name in dir(kind)
    if not name.startswith("_") and name not in _CONSTANT_TIME
} | {"loads", "dumps", "reader", "read", "readline", "readlines", "getvalue", "write", "writelines"}


class _Metered(ast.NodeTransformer):
    """Replaces the operations by calls of METER, which the compiled code finds among the built-in names."""

    def _call(self, method: str, old: ast.AST, *given: ast.expr) -> ast.expr:
        function = ast.Attribute(ast.Name("__meter__", ast.Load()), method, ast.Load())
        return ast.fix_missing_locations(ast.copy_location(ast.Call(function, list(given), []), old))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            made = self._call("method", node, node.func.value, ast.Constant(node.func.attr), *node.args)
        elif isinstance(node.func, ast.Name) and node.func.id in _BUILTINS:
            made = self._call("call", node, node.func, *node.args)
        else:
            return node
        assert isinstance(made, ast.Call)
        made.keywords = node.keywords
        return made

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        kind, left, right = node.ops[0], node.left, node.comparators[0]
        if isinstance(kind, ast.In | ast.NotIn):
            made = self._call("contains", node, right, left)
        elif isinstance(kind, ast.Eq):
            made = self._call("equal", node, left, right)
        else:
            return node
        return ast.copy_location(ast.UnaryOp(ast.Not(), made), node) if isinstance(kind, ast.NotIn) else made

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.slice, ast.Slice) or not isinstance(node.ctx, ast.Load):
            return node
        bounds = [bound or ast.Constant(None) for bound in (node.slice.lower, node.slice.upper, node.slice.step)]
        return self._call("part", node, node.value, ast.Call(ast.Name("slice", ast.Load()), bounds, []))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = {ast.Add: "added", ast.Mult: "repeated"}.get(type(node.op))
        return self._call(name, node, node.left, node.right) if name else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        return self._call("copied", node, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)  # not its format, which is no expression
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Add) or not isinstance(node.target, ast.Name):
            return node
        now = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        return ast.copy_location(ast.Assign([node.target], self._call("extended", node, now, node.value)), node)


def modules() -> Iterator[ModuleType]:
    """The measured modules that are loaded."""
    for name, module in sorted(sys.modules.items()):
        if f"{name}.".startswith((*OWN, *LIBRARIES)) and str(getattr(module, "__file__", "")).endswith(".py"):
            yield module


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


_Key = tuple[str, str, int, tuple[str, ...]]


def _key(code: CodeType) -> _Key:
    return code.co_filename, code.co_qualname, code.co_firstlineno, code.co_freevars


def _metered_code(path: str) -> dict[_Key, CodeType]:
    """The code of the functions of a file with the operations replaced, without lambdas that share a line."""
    tree = _Metered().visit(ast.parse(Path(path).read_text(encoding="utf-8")))
    codes = list(_codes(compile(tree, path, "exec", dont_inherit=True)))
    found = Counter(map(_key, codes))
    return {_key(code): code for code in codes if found[_key(code)] == 1}


@contextmanager
def metered(measured: Iterable[ModuleType]) -> Iterator[None]:
    """Run the functions of modules with their operations counted by METER."""
    codes: dict[_Key, CodeType] = {}
    for module in measured:
        codes |= _metered_code(str(module.__file__))
    gc.unfreeze()  # get_objects() leaves out what is frozen
    replaced = [
        (function, function.__code__)
        for function in gc.get_objects()
        if isinstance(function, FunctionType) and _key(function.__code__) in codes
    ]
    builtins.__meter__ = METER  # type: ignore[attr-defined]
    for function, old in replaced:
        function.__code__ = codes[_key(old)]
    try:
        yield
    finally:
        for function, old in replaced:
            function.__code__ = old
