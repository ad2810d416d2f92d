# SPDX-License-Identifier: BSD-2-Clause
"""Every error is a problem document (RFC 9457), from the API, the URL routing, or the server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers, set_response_etag
from django.utils.http import parse_http_date_safe
from pydantic import BaseModel, Field

from perfweb.headers import AnswerMiddleware, is_compressed

CONTENT_TYPE = "application/problem+json"
ENTITY_TAG = "perfweb.entity_tag"
"""The attribute of a request with the entity tag of its response, if it was known before the response was made."""


class BadInput(BaseModel):
    """One parameter that was refused."""

    parameter: str = Field(description="its name")
    reason: str = Field(description="the error and its correction")


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    type: str = Field(description="always about:blank: the status is the kind of problem")
    title: str = Field(description="the status in words")
    status: int = Field(description="the status code of HTTP")
    detail: str = Field(description="the error, and what to do")
    errors: list[BadInput] = Field(description="the parameters that were refused; empty for other problems")


class RefusedError(Exception):
    """A request refused with a status code, a message, and the invalid parameters."""

    def __init__(self, status: int, detail: str, errors: Sequence[BadInput] = ()) -> None:
        super().__init__(detail)
        self.status, self.detail, self.errors = status, detail, list(errors)


def bad_input(*errors: BadInput) -> RefusedError:
    """Return the error about parameters, to be raised."""
    detail = "; ".join(f"{error.parameter}: {error.reason}" for error in errors)
    return RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors)


def problem(
    status: int, detail: str, errors: Sequence[BadInput] = (), headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Return a problem as a response. With a missing token it has WWW-Authenticate (RFC 9110 section 11.6.1)."""
    known = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    body = Problem(
        type="about:blank", title=HTTPStatus(status).phrase, status=status, detail=detail, errors=list(errors)
    )
    content = json.dumps(body.model_dump(), indent=1) + "\n"
    return HttpResponse(content, content_type=CONTENT_TYPE, status=status, headers={**known, **(headers or {})})


class ApiAnswers(AnswerMiddleware):
    """Makes all responses below /api/ alike: problems instead of pages, and validators for conditional requests.

    An entity tag is a digest of the data of the response, if it is known, else of the response itself, so that both
    change together (RFC 9110 section 8.8.3).
    """

    PREFIX = "/api/"

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not request.path_info.startswith(self.PREFIX) or not isinstance(response, HttpResponse):
            return response
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            return response if response.headers["Content-Type"] == CONTENT_TYPE else _as_problem(request, response)
        if response.status_code in {HTTPStatus.OK, HTTPStatus.NOT_MODIFIED}:
            return _validated(request, response)
        return response


def _as_problem(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Turn an error page into a problem; `Allow` and other headers that belong to the status stay."""
    detail = {
        HTTPStatus.NOT_FOUND: f"No resource has the address {request.path}. /api/v1/ describes the API.",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not allowed here; /api/v1/ lists the methods.",
        HTTPStatus.INTERNAL_SERVER_ERROR: "The server failed; the reason is in its log.",
        HTTPStatus.SERVICE_UNAVAILABLE: "A part of the service is down; /health/ names it. Try again in a few seconds.",
    }.get(HTTPStatus(response.status_code), "The request was not understood.")
    answer = problem(response.status_code, detail)
    for name in ("Allow", "Retry-After"):
        if name in response.headers:
            answer.headers[name] = response.headers[name]
    return answer


def _validated(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Add an entity tag, and respond with 304 to a client that has the same response (RFC 9110 section 13.1)."""
    response.headers.setdefault("Cache-Control", "no-cache")  # clients may store it, but must revalidate
    if tag := request.META.get(ENTITY_TAG):
        response.headers["ETag"] = tag
    else:
        set_response_etag(response)
    if response.status_code == HTTPStatus.NOT_MODIFIED or is_compressed(response):
        patch_vary_headers(response, ("Accept-Encoding",))
    modified = response.headers.get("Last-Modified")
    answer = get_conditional_response(
        request,
        etag=response.headers["ETag"],
        last_modified=parse_http_date_safe(modified) if modified else None,
        response=response,
    )
    if answer is None or answer.status_code == HTTPStatus.PRECONDITION_FAILED:
        failed = "The current version does not satisfy the condition of the request."
        return problem(HTTPStatus.PRECONDITION_FAILED, failed)
    return answer
