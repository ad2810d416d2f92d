# SPDX-License-Identifier: BSD-2-Clause
"""Decorators that name the action of a view, and check the permission for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect

from perfweb.accounts.permissions import Action, NotAllowedError, may

View = Callable[..., HttpResponseBase]


def acts(action: Action) -> Callable[[View], View]:
    """Guard a view: redirect anonymous users to the sign-in, and return 403 without the permission.

    The view has the action as an attribute. A test requires it of every view that accepts POST.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if may(request.user, action):
                return view(request, *args, **kwargs)
            if request.user.is_authenticated:
                raise NotAllowedError(action)
            if request.method == "POST":  # a form's content would be lost, and its address may have no page
                return redirect(settings.LOGIN_URL)
            return redirect_to_login(request.get_full_path())

        guarded.action = action  # type: ignore[attr-defined]
        return guarded

    return decorate
