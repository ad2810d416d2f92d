# SPDX-License-Identifier: BSD-2-Clause
"""Responses for one user are never cached, and set a cookie with the name; rate limits return their status."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from perfweb.accounts.limits import NotNowError
from perfweb.headers import AnswerMiddleware

NAME_COOKIE = "account"
"""Has the name of the user who is signed in, percent-encoded, for the header of pages. It permits nothing."""


class Personal(AnswerMiddleware):
    """Forbids caching of every response that depends on the session.

    Most pages do not depend on it. They are the same for all users, so they can be cached and revalidated by their
    entity tag. Actions for some users only are on separate pages. A script shows who is signed in on all pages, from a
    cookie that these responses set.
    """

    def changed(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.session.accessed or request.session.modified:
            response.headers["Cache-Control"] = "private, no-store"
            del response.headers["ETag"]
            if response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                _set_name(request, response)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Respond with a page after too many attempts."""
        return not_now(request, exception) if isinstance(exception, NotNowError) else None


def _set_name(request: HttpRequest, response: HttpResponseBase) -> None:
    name = quote(request.user.get_username())  # empty for nobody
    known = request.COOKIES.get(NAME_COOKIE, "")
    if name and name != known:
        age, secure = request.session.get_expiry_age(), settings.SESSION_COOKIE_SECURE
        response.set_cookie(NAME_COOKIE, name, max_age=age, secure=secure, samesite="Lax")
    elif known and not name:
        response.delete_cookie(NAME_COOKIE, samesite="Lax")


def not_now(request: HttpRequest, error: NotNowError) -> HttpResponse:
    """Return the page with the time until the next attempt."""
    context = {"title": HTTPStatus(error.status).phrase, "reason": str(error)}
    answer = render(request, "accounts/refused.html", context, status=error.status)
    answer.headers["Retry-After"] = str(error.seconds)
    return answer
