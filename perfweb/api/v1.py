# SPDX-License-Identifier: BSD-2-Clause
"""Version 1 of the API: its resources, its schema, and its errors."""

from __future__ import annotations

import json
from functools import cache
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from perfweb.accounts.limits import NotNowError
from perfweb.accounts.permissions import NotAllowedError
from perfweb.api import (
    account,
    catalogue,
    comparisons,
    problems,
    queue,
    reference,
    results,
    runs,
    series,
    submissions,
    tracking,
)
from perfweb.api.bodies import StrictParser
from perfweb.api.problems import BadInput, RefusedError, bad_input, problem

ROOT = "/api/v1/"
DESCRIPTION = """\
The content of the pages. Reading needs no token. Changes are POST requests with a token, as Authorization: Bearer.
Responses are JSON; errors are problem documents (RFC 9457). Lists are split into pages: follow `next` to the end.
Every response has an entity tag: send it as If-None-Match, and 304 means that nothing has changed. Times are UTC.
Runs are identified by number, plans by the SHA-256 of their text, other objects by name. These do not change."""

api = NinjaAPI(
    parser=StrictParser(),
    title="perfweb",
    version="1",
    description=DESCRIPTION,
    openapi_url=None,
    docs_url=None,
    urls_namespace="api-v1",
)
for resource in (runs, queue, results, comparisons, series, catalogue, tracking, submissions, account):
    api.add_router("", resource.router)


@api.exception_handler(RefusedError)
def refused(request: HttpRequest, error: RefusedError) -> HttpResponse:  # noqa: ARG001
    return problem(error.status, error.detail, error.errors)


@api.exception_handler(HttpError)
def unreadable(request: HttpRequest, error: HttpError) -> HttpResponse:  # noqa: ARG001
    """Handle a body that is not JSON; the reason is in the error's cause, not in ninja's own text."""
    return problem(error.status_code, f"{error}: {error.__cause__}" if error.__cause__ else str(error))


@api.exception_handler(Http404)
def missing(request: HttpRequest, error: Http404) -> HttpResponse:  # noqa: ARG001
    return problem(HTTPStatus.NOT_FOUND, str(error))


@api.exception_handler(AuthenticationError)
def unknown(request: HttpRequest, error: AuthenticationError) -> HttpResponse:  # noqa: ARG001
    reason = "This needs a token, as Authorization: Bearer. Make one on the page of your account."
    return problem(HTTPStatus.UNAUTHORIZED, reason)


@api.exception_handler(NotAllowedError)
def not_allowed(request: HttpRequest, error: NotAllowedError) -> HttpResponse:  # noqa: ARG001
    return problem(HTTPStatus.FORBIDDEN, str(error))


@api.exception_handler(NotNowError)
def not_now(request: HttpRequest, error: NotNowError) -> HttpResponse:  # noqa: ARG001
    return problem(error.status, str(error), headers={"Retry-After": str(error.seconds)})


@api.exception_handler(ValidationError)
def misunderstood(request: HttpRequest, error: ValidationError) -> HttpResponse:  # noqa: ARG001
    found = [BadInput(parameter=_parameter(wrong["loc"]), reason=_reason(wrong)) for wrong in error.errors]
    refusal = bad_input(*found)
    return problem(refusal.status, refusal.detail, refusal.errors)


def _parameter(place: tuple[str | int, ...]) -> str:
    """Return the name of a parameter from pydantic's location: the last name, without an index of a list."""
    return [str(part) for part in place if not isinstance(part, int)][-1]


def _reason(wrong: dict[str, Any]) -> str:
    return str(wrong["msg"]).removeprefix("Value error, ").removeprefix("Input ")


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document. HEAD is left out: by definition it is GET without the content."""
    made: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(path_prefix=ROOT)))
    for operations in made["paths"].values():
        operations.pop("head", None)
        for operation in operations.values():
            for parameter in operation["parameters"]:
                _without_null(parameter["schema"])
            for status, response in operation["responses"].items():
                if int(status) >= HTTPStatus.BAD_REQUEST:
                    response["content"] = {problems.CONTENT_TYPE: response["content"].pop("application/json")}
    return made


def _without_null(schema: dict[str, Any]) -> None:
    """A query parameter can be left out, but there is no notation for null."""
    if "anyOf" in schema:
        (only,) = (choice for choice in schema.pop("anyOf") if choice != {"type": "null"})
        schema.update(only)


@require_safe
def schema(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Send the OpenAPI document."""
    return HttpResponse(json.dumps(document(), indent=1) + "\n", content_type="application/json")


@require_safe
def guide(request: HttpRequest) -> HttpResponse:
    """Show the OpenAPI document as a page."""
    known = document()
    context = {
        "document": known,
        "calls": reference.calls(known),
        "schemas": reference.schemas(known),
        "site": settings.SITE_URL,
    }
    return render(request, "api/reference.html", context)
