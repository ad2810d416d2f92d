# SPDX-License-Identifier: BSD-2-Clause
"""The one security header that Django 5.2 does not send by itself."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpResponseBase
from django.http.request import HttpRequest

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class ContentSecurityPolicy:
    """Adds `Content-Security-Policy` to every answer that has none (https://www.w3.org/TR/CSP3/).

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
            return _protected(answer)
        return self._later(answer)

    async def _later(self, answer: Awaitable[HttpResponseBase]) -> HttpResponseBase:
        return _protected(await answer)


def _protected(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", settings.CONTENT_SECURITY_POLICY)
    return response
