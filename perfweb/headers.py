# SPDX-License-Identifier: BSD-2-Clause
"""What every request passes: the log learns its path, and its answer gets the one security header that Django 5.2 does
not send, and is compressed.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from django.http.request import HttpRequest
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import condition
from django.views.decorators.vary import vary_on_headers

from perfweb import logs

_COMPRESSED = ("text/html", "application/json", "image/svg+xml")
"""Media types that are compressed."""

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
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


def revalidated(tag: Callable[..., str | None]) -> Callable[[View], View]:
    """Return a decorator for the view of a page that Compression compresses: it answers with 304 if `tag`, which gets
    the view's arguments, returns the entity tag that the client has. Both answers have the same Vary (RFC 9110, section
    15.4.5).
    """

    def decorate(view: View) -> View:
        return vary_on_headers("Accept-Encoding")(condition(etag_func=tag)(view))

    return decorate


def is_compressed(response: HttpResponseBase) -> bool:
    """Return whether a response is compressed for clients that accept it."""
    return (
        isinstance(response, HttpResponse)
        and response.headers.get("Content-Type", "").split(";")[0] in _COMPRESSED
        and "no-store" not in response.headers.get("Cache-Control", "")
    )


class Compression(AnswerMiddleware):
    """Compresses pages, figures and API responses for clients that accept gzip (RFC 1952).

    Downloads and streams are not compressed, because ranges of them can be requested. An entity tag becomes a weak one.
    Responses that must not be cached are not compressed, because their length could reveal secrets.
    """

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        super().__init__(get_response)
        self._gzip = GZipMiddleware(get_response)

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.status_code == HTTPStatus.NOT_MODIFIED:  # the length of the response that it replaces is unknown
            response.headers.pop("Content-Length", None)  # (RFC 9110, section 8.6)
            return response
        if not isinstance(response, HttpResponse) or not is_compressed(response):
            return response
        patch_vary_headers(response, ("Accept-Encoding",))  # of short ones, too, which Django does not compress
        return self._gzip.process_response(request, response)
