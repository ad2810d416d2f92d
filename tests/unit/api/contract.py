# SPDX-License-Identifier: BSD-2-Clause
"""Queries the API and checks every response against the OpenAPI document."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
from django.http import HttpResponse
from django.test import Client

from perfweb.api.problems import CONTENT_TYPE
from perfweb.api.v1 import document


class Api:
    """Reads addresses below /api/v1/; a response that the document does not describe fails the test."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def read(self, address: str, status: int = 200, headers: dict[str, str] | None = None, **query: Any) -> Any:
        """The JSON of a response that must have this status."""
        response = self.answer(address, headers, **query)
        assert response.status_code == status, response.content.decode()
        return json.loads(response.content)

    def answer(self, address: str, headers: dict[str, str] | None = None, **query: Any) -> HttpResponse:
        """The whole response, checked."""
        path = address if address.startswith("/") else f"/api/v1/{address}"
        got: Any = self.client.get(path, query, headers=headers or {})
        response: HttpResponse = got  # the stubs only declare it for the test client
        check(path.partition("?")[0], response)
        return response

    def walk(self, address: str, **query: Any) -> list[Any]:
        """The items of all pages of a list."""
        page = self.read(address, **query)
        items: list[Any] = page["items"]
        while page["next"]:
            page = self.read(page["next"])
            assert page["items"]
            items += page["items"]
        return items


def check(path: str, response: HttpResponse) -> None:
    """Assert that the document describes such a response at a path."""
    documented = _operation(path)["responses"][str(response.status_code)]
    if response.status_code == 304:
        assert response.content == b""
        return
    media_type = response.headers["Content-Type"].partition(";")[0]
    assert media_type == ("application/json" if response.status_code < 400 else CONTENT_TYPE)
    schema = {**documented["content"][media_type]["schema"], "components": document()["components"]}
    checker = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    checker.validate(json.loads(response.content))


def _operation(path: str) -> dict[str, Any]:
    for template, operations in document()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            found: dict[str, Any] = operations["get"]
            return found
    raise AssertionError(f"the OpenAPI document has no {path}")
