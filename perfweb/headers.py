# SPDX-License-Identifier: BSD-2-Clause
"""What every request passes: the log learns its path, and its answer gets the one security header that Django 5.2 does
not send, and is compressed.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from django.http.request import HttpRequest
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers

from perfweb import logs

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class AnswerMiddleware:
    """Middleware that only changes responses: a subclass implements `changed`, which must not block.

    It serves synchronous and asynchronous chains so that a stream of events is not pulled through a thread.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        answer = self.get_response(request)
        if isinstance(answer, HttpResponseBase):
            return self.changed(request, answer)
        return self._later(request, answer)

    async def _later(self, request: HttpRequest, answer: Awaitable[HttpResponseBase]) -> HttpResponseBase:
        return self.changed(request, await answer)

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return the answer to send."""
        raise NotImplementedError


class LoggedPath(AnswerMiddleware):
    """What is logged while a request is answered is about its path."""

    def __call__(self, request: HttpRequest) -> Answer:
        if iscoroutinefunction(self.get_response):
            return self._awaited(request)
        with logs.about(path=request.path):
            return self.get_response(request)

    async def _awaited(self, request: HttpRequest) -> HttpResponseBase:
        with logs.about(path=request.path):
            return await cast("Awaitable[HttpResponseBase]", self.get_response(request))


class ContentSecurityPolicy(AnswerMiddleware):
    """Adds `Content-Security-Policy` to every answer that has none (https://www.w3.org/TR/CSP3/)."""

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:  # noqa: ARG002
        response.headers.setdefault("Content-Security-Policy", settings.CONTENT_SECURITY_POLICY)
        return response


def _not_modified(response: HttpResponseBase) -> HttpResponseBase:
    """Give a 304 the headers of the response that it replaces: its Vary, and no length, because that of the
    response is unknown here (RFC 9110, sections 8.6 and 15.4.5).
    """
    response.headers.pop("Content-Length", None)
    patch_vary_headers(response, ("Accept-Encoding",))
    return response


class Compression(AnswerMiddleware):
    """Compresses pages, figures and API responses for clients that accept gzip (RFC 1952).

    Downloads and streams are not compressed, because ranges of them can be requested. An entity tag becomes a weak one.
    Responses that must not be cached are not compressed, because their length could reveal secrets.
    """

    TYPES = ("text/html", "application/json", "image/svg+xml")

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        super().__init__(get_response)
        self._gzip = GZipMiddleware(get_response)

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.status_code == HTTPStatus.NOT_MODIFIED:
            return _not_modified(response)
        if (
            not isinstance(response, HttpResponse)
            or response.headers.get("Content-Type", "").split(";")[0] not in self.TYPES
            or "no-store" in response.headers.get("Cache-Control", "")
        ):
            return response
        return self._gzip.process_response(request, response)
