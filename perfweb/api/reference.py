# SPDX-License-Identifier: BSD-2-Clause
"""The OpenAPI document as tables for readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.text import slugify

_PLAIN = {"integer": "whole number", "boolean": "true or false", "object": "object", "null": "null"}


@dataclass(frozen=True)
class Field:
    """A parameter or a field of an answer."""

    name: str
    type: str
    required: bool
    text: str
    refers: str = ""
    """Name of its schema, if any."""


@dataclass(frozen=True)
class Call:
    """An operation on an address."""

    method: str
    address: str
    summary: str
    description: str
    parameters: list[Field]
    request: str
    """Name of the schema of the request's body, if any."""
    answer: str

    @property
    def anchor(self) -> str:
        """The fragment of the operation's address on the page of the reference."""
        return slugify(self.address if self.method == "GET" else f"{self.method} {self.address}")


@dataclass(frozen=True)
class Schema:
    """An object of requests or responses."""

    name: str
    description: str
    fields: list[Field]


def calls(document: dict[str, Any]) -> list[Call]:
    """List the operations of a document."""
    return [
        Call(
            method.upper(),
            address,
            operation["summary"],
            operation.get("description", ""),
            [_parameter(parameter) for parameter in operation["parameters"]],
            _sent(operation.get("requestBody", {})),
            _sent(_success(operation)),
        )
        for address, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def _success(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the successful response."""
    found: dict[str, Any] = next(
        details for status, details in operation["responses"].items() if status.startswith("2")
    )
    return found


def _sent(message: dict[str, Any]) -> str:
    """Return the name of the object of a request or response, empty without one."""
    return _refers(message["content"]["application/json"]["schema"], {}) if "content" in message else ""


def schemas(document: dict[str, Any]) -> list[Schema]:
    """List the objects of a document by name; enumerations are described where they are used."""
    known = document["components"]["schemas"]
    return [
        Schema(name, known[name].get("description", ""), _fields(known[name], known))
        for name in sorted(known)
        if "properties" in known[name]
    ]


def _parameter(parameter: dict[str, Any]) -> Field:
    text = parameter.get("description", "")
    return Field(parameter["name"], type_words(parameter["schema"], {}), parameter["required"], text)


def _fields(schema: dict[str, Any], known: dict[str, Any]) -> list[Field]:
    needed = schema.get("required", [])
    return [
        Field(name, type_words(field, known), name in needed, field.get("description", ""), _refers(field, known))
        for name, field in schema["properties"].items()
    ]


def type_words(schema: dict[str, Any], known: dict[str, Any]) -> str:
    """Return the type of a value in words. `known` are the schemas that it may refer to."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return type_words(known[name], known) if "enum" in known.get(name, {}) else name
    if choices := schema.get("anyOf", schema.get("allOf")):
        return " or ".join(type_words(choice, known) for choice in choices)
    if words := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return ", ".join(map(str, words))
    if schema.get("type") == "array":
        return f"list of {type_words(schema['items'], known)}"
    kind = schema.get("type", "any")
    return "time" if schema.get("format") == "date-time" else _PLAIN.get(kind, kind)


def _refers(schema: dict[str, Any], known: dict[str, Any]) -> str:
    """The name of the object that a schema leads to, the first if there are several."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return "" if "enum" in known.get(name, {}) else name
    inner = [*schema.get("anyOf", []), *schema.get("allOf", []), schema.get("items", {})]
    return next((name for part in inner if part and (name := _refers(part, known))), "")
