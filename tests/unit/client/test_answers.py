# SPDX-License-Identifier: BSD-2-Clause
"""The types of the client are those of the OpenAPI document, and the client needs nothing but Python."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import perfctl
import pytest
from perfctl import answers

from perfweb.api.v1 import document

SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}
TYPES = {name: kind for name, kind in vars(answers).items() if is_typeddict(kind)}


def of_python(kind: Any) -> str:
    """A type of the client in one word."""
    if isinstance(kind, UnionType) or get_origin(kind) is UnionType:
        return " or ".join(sorted(of_python(part) for part in get_args(kind)))
    if kind is NoneType:
        return "null"
    if get_origin(kind) is list:
        return f"list of {of_python(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        return "object"
    return SCALARS.get(kind) or str(kind.__name__)


def of_schema(schema: dict[str, Any]) -> str:
    """A type of the document in the same word."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        known = document()["components"]["schemas"][name]
        return str(known["type"]) if "enum" in known else name
    if "anyOf" in schema:
        return " or ".join(sorted(of_schema(part) for part in schema["anyOf"]))
    if schema["type"] == "array":
        return f"list of {of_schema(schema['items'])}"
    return str(schema["type"])


@pytest.mark.parametrize("name", sorted(TYPES))
def test_types_are_those_of_the_document(name: str) -> None:
    schema = document()["components"]["schemas"][name]
    theirs = {field: of_schema(described) for field, described in schema["properties"].items()}
    ours = {field: of_python(kind) for field, kind in get_type_hints(TYPES[name]).items()}
    assert ours == theirs
    assert set(schema["required"]) == set(theirs)


def test_the_client_needs_nothing_but_python() -> None:
    folder = Path(perfctl.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
                for name in names:
                    assert name.partition(".")[0] in {*sys.stdlib_module_names, "perfctl"}, path
