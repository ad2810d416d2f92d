# SPDX-License-Identifier: BSD-2-Clause
"""Malformed requests are refused with 400 or 415 before a view reads them, and every error has a text.

Refused for every address: percent-encoded bytes that are not UTF-8 (RFC 3986 section 2.5), NUL, which PostgreSQL's text
cannot store, a content length that is not a number (RFC 9110 section 8.6), a charset other than UTF-8, and headers from
which Django cannot make a request.
"""

from __future__ import annotations

import codecs
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from django.conf import settings
from django.core.exceptions import BadRequest
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.db import DataError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string

from perfweb.api.problems import ApiAnswers, problem
from perfweb.headers import Answer, AnswerMiddleware
from perfweb.parameters import ParameterError

log = logging.getLogger(__name__)

CHARSETS = {"utf-8", "ascii"}
NO_NUL = "It has a NUL character, which no text here can hold: remove it."
TOO_LARGE = "It has a number or a date that is outside the range that the database can hold."


class UnsupportedCharsetError(BadRequest):
    """The body, or its declared charset, is not supported."""


class WellFormed(AnswerMiddleware):
    """Refuses malformed requests, and adds a reason to each error without a text."""

    def __call__(self, request: HttpRequest) -> Answer:
        check(request)
        return super().__call__(request)

    def process_view(self, request: HttpRequest, view: Callable[..., HttpResponseBase], *_: object) -> None:
        """Refuse NUL in fields of a form. A view without form validation reads the body itself."""
        if request.method != "POST" or getattr(view, "csrf_exempt", False):
            return
        for name, values in request.POST.lists():
            if "\0" in name or any("\0" in value for value in values):
                raise BadRequest(f"The field “{name[:40].replace(chr(0), '?')}”: {NO_NUL}")

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Refuse data that the database refuses (SQLSTATE class 22) and no check before it did."""
        if not isinstance(exception, DataError):
            return None
        log.warning("refused by the database: %s", exception, exc_info=exception)
        return bad_request(request, BadRequest(TOO_LARGE))

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:  # noqa: ARG002
        """Add a reason to an error: Django sends 405 and 412 without."""
        status = HTTPStatus(response.status_code)
        if status < HTTPStatus.BAD_REQUEST or not isinstance(response, HttpResponse) or response.content:
            return response
        reason = {
            HTTPStatus.METHOD_NOT_ALLOWED: f"This address takes only {response.headers.get('Allow')}.",
            HTTPStatus.PRECONDITION_FAILED: "The current state does not satisfy the condition of the request.",
        }.get(status, "The request cannot be answered.")
        response.content = render_to_string("400.html", {"title": status.phrase, "reason": reason}).encode()
        response.headers["Content-Type"] = "text/html; charset=utf-8"
        response.headers["Content-Length"] = str(len(response.content))
        return response


class Handler(ASGIHandler):
    """Django's handler, with a response also when no request can be made from the headers."""

    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponse]:
        """Return the request, or the refusal of a raw byte in the query that is not UTF-8, or of a parameter of
        Content-Type in a charset that cannot be decoded (RFC 8187).
        """
        try:
            request, _ = super().create_request(scope, body_file)
        except (LookupError, ValueError):
            request = None
        if request:
            return request, None
        reason = (
            "The query or the Content-Type header cannot be decoded: percent-encode the query, and send ASCII headers."
        )
        return None, early_refusal(scope["path"], HTTPStatus.BAD_REQUEST, reason)


def early_refusal(path: str, status: HTTPStatus, reason: str) -> HttpResponse:
    """Return a response outside of all middleware, with the headers that middleware would add."""
    if path.startswith(ApiAnswers.PREFIX):
        made = problem(status, reason)
    else:
        made = HttpResponse(f"{reason}\n", "text/plain; charset=utf-8", status)
    made.headers["Content-Security-Policy"] = settings.CONTENT_SECURITY_POLICY
    made.headers["X-Content-Type-Options"] = "nosniff"
    return made


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond to a malformed request with the reason: 415 for a charset, else 400. Django calls it as handler400."""
    status = (
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE if isinstance(exception, UnsupportedCharsetError) else HTTPStatus.BAD_REQUEST
    )
    reason = str(exception) if isinstance(exception, BadRequest) else ""
    if request.path_info.startswith(ApiAnswers.PREFIX):
        return problem(status, reason or "The request is malformed; the log of the web server has the reason.")
    template = "parameter.html" if isinstance(exception, ParameterError) else "400.html"
    return render(request, template, {"title": status.phrase, "reason": reason}, status=status)


def check(request: HttpRequest) -> None:
    """Raise BadRequest with what to do for a malformed request."""
    path = request.scope.get("raw_path") if isinstance(request, ASGIRequest) else None
    _check_text("path", unquote_to_bytes(path or request.path_info))
    _check_text("query", unquote_to_bytes(request.META.get("QUERY_STRING", "")))
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not (length.isascii() and length.isdigit()):
        raise BadRequest(f"Content-Length: “{length[:40]}” is no number of bytes.")
    charset = (request.content_params or {}).get("charset", "utf-8")
    if not _is_utf8(charset):
        raise UnsupportedCharsetError(f"Content-Type: the charset “{charset[:40]}” is not read here: send UTF-8.")


def _check_text(where: str, text: bytes) -> None:
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        raise BadRequest(f"The {where} of the address is not UTF-8: percent-encode the bytes of UTF-8.") from None
    if "\0" in decoded:
        raise BadRequest(f"The {where} of the address: {NO_NUL}")


def _is_utf8(charset: str) -> bool:
    try:
        return codecs.lookup(charset).name in CHARSETS
    except (LookupError, ValueError):
        return False
