# SPDX-License-Identifier: BSD-2-Clause
"""What is made for one person goes to no other, and what cannot be done now is told with the right status."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from perfweb.accounts.limits import NotNowError
from perfweb.headers import AnswerMiddleware


class Personal(AnswerMiddleware):
    """Lets nobody keep an answer for which it was asked who is signed in.

    Most pages do not ask. They are the same for everybody, so that they may be kept and asked for again with their
    entity tag; what only some may do stands on pages of its own.
    """

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.session.accessed or request.session.modified:
            response.headers["Cache-Control"] = "private, no-store"
            del response.headers["ETag"]
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer with a page where something was tried too often."""
        return not_now(request, exception) if isinstance(exception, NotNowError) else None


def not_now(request: HttpRequest, error: NotNowError) -> HttpResponse:
    """Return the page that says when something will be possible again."""
    context = {"title": HTTPStatus(error.status).phrase, "reason": str(error)}
    answer = render(request, "accounts/refused.html", context, status=error.status)
    answer.headers["Retry-After"] = str(error.seconds)
    return answer
