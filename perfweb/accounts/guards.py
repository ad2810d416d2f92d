# SPDX-License-Identifier: BSD-2-Clause
"""Every view that changes something says what it does, and with that who may."""

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
    """Guard a view: who is not signed in is sent there first, and who may not do it is told so (403).

    The view has the action as an attribute. A test demands one of every view that takes POST.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if may(request.user, action):
                return view(request, *args, **kwargs)
            if request.user.is_authenticated:
                raise NotAllowedError(action)
            if request.method == "POST":  # what was sent is lost, and its address may have no page
                return redirect(settings.LOGIN_URL)
            return redirect_to_login(request.get_full_path())

        guarded.action = action  # type: ignore[attr-defined]
        return guarded

    return decorate
