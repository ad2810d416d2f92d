# SPDX-License-Identifier: BSD-2-Clause
"""Responses for one user are never cached, and rate limits return their status."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from perfweb.accounts.limits import NotNowError
from perfweb.headers import AnswerMiddleware


class Personal(AnswerMiddleware):
    """Forbids caching of every response that depends on the session.

    Most pages do not depend on it. They are the same for all users, so they can be cached and revalidated by their
    entity tag. Actions for some users only are on separate pages.
    """

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.session.accessed or request.session.modified:
            response.headers["Cache-Control"] = "private, no-store"
            del response.headers["ETag"]
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Respond with a page after too many attempts."""
        return not_now(request, exception) if isinstance(exception, NotNowError) else None


def not_now(request: HttpRequest, error: NotNowError) -> HttpResponse:
    """Return the page with the time until the next attempt."""
    context = {"title": HTTPStatus(error.status).phrase, "reason": str(error)}
    answer = render(request, "accounts/refused.html", context, status=error.status)
    answer.headers["Retry-After"] = str(error.seconds)
    return answer
