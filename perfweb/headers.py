# SPDX-License-Identifier: BSD-2-Clause
"""The one security header that Django 5.2 does not send by itself, and how answers are changed on their way out."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpResponseBase
from django.http.request import HttpRequest

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class AnswerMiddleware:
    """Middleware that changes answers and nothing else: a subclass says how in `changed`, which must not block.

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


class ContentSecurityPolicy(AnswerMiddleware):
    """Adds `Content-Security-Policy` to every answer that has none (https://www.w3.org/TR/CSP3/)."""

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:  # noqa: ARG002
        response.headers.setdefault("Content-Security-Policy", settings.CONTENT_SECURITY_POLICY)
        return response
