# SPDX-License-Identifier: BSD-2-Clause
"""The pages of watches: begin and end one, and set, confirm and forget the addresses for notifications."""

from __future__ import annotations

from typing import cast

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from perfweb.accounts.actors import on_page
from perfweb.accounts.guards import acts
from perfweb.accounts.models import User
from perfweb.accounts.permissions import Action
from perfweb.parameters import choice_in, number_in
from perfweb.runs.catalogue import TESTS
from perfweb.tracking.alerts import addresses, watching, webhooks
from perfweb.tracking.alerts.addresses import WatchError
from perfweb.tracking.models import AddressKind, Alert, AlertAddress, TrackedBranch, Watch


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.WATCH)
def watch(request: HttpRequest) -> HttpResponse:
    """Begin or end the watch of what the address names with `branch`, `test` or `alert`."""
    wanted = _wanted(request)
    user = wanted.user
    active = user.watches.filter(branch=wanted.branch, test=wanted.test, alert=wanted.alert).exists()
    problem = ""
    if request.method == "POST":
        try:
            watching.watch(on_page(request), wanted, active=not active)
        except WatchError as error:
            problem = str(error)
        else:
            return redirect("dashboard:mine")
    context = {
        "watch": wanted, "active": active, "problem": problem,
        "confirmed": AlertAddress.objects.filter(user=user, confirmed__isnull=False).exists(),
    }  # fmt: skip
    return render(request, "tracking/watch.html", context, status=409 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.WATCH)
def address(request: HttpRequest, kind: AddressKind) -> HttpResponse:
    """Set the address for notifications of watched alerts, or forget it if the form has an empty one."""
    user = cast("User", request.user)
    found = addresses.of(user, kind)
    problem, text = "", request.POST.get("address", "")
    if request.method == "POST":
        try:
            if text.strip():
                addresses.request_address(on_page(request), user, kind, text)
            elif found:
                addresses.forget_own(on_page(request), found)
        except WatchError as error:
            problem = str(error)
        else:
            return redirect("dashboard:mine")
    context = {
        "found": found, "problem": problem, "text": text, "hours": addresses.CONFIRM_HOURS, "kind": kind,
        "secret": webhooks.secret(found) if found and kind == AddressKind.WEBHOOK else "",
    }  # fmt: skip
    return render(request, "tracking/address.html", context, status=422 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.CONFIRM_ADDRESS)
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Confirm the address of a link; opening it changes nothing, because programs open links of mails, too."""
    try:
        done = request.method == "POST"
        found = addresses.confirm(on_page(request), token) if done else addresses.waiting(token)
    except WatchError as error:
        raise Http404(str(error)) from None
    return render(request, "tracking/confirm.html", {"found": found, "done": done})


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.UNSUBSCRIBE)
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """End all mails to the address of a link. Mail programs send the POST themselves (RFC 8058, section 3.2): without
    a cookie, and they follow no redirection.
    """
    if request.method == "POST":
        try:
            addresses.unsubscribe(on_page(request), token)
        except WatchError as error:
            raise PermissionDenied(str(error)) from None
        return render(request, "tracking/unsubscribe.html", {"done": True})
    try:
        found = addresses.subscribed(token)
    except WatchError as error:
        raise Http404(str(error)) from None
    return render(request, "tracking/unsubscribe.html", {"found": found})


def _wanted(request: HttpRequest) -> Watch:
    """Return an unsaved watch of what the address names. Raises Http404 unless it is exactly one thing."""
    branch = choice_in(request, "branch", TrackedBranch.objects.values_list("name", flat=True))
    test, alert = choice_in(request, "test", TESTS), number_in(request, "alert")
    if [bool(branch), bool(test), alert is not None].count(True) != 1:
        raise Http404("A watch is of a branch, a test or an alert: follow a link “Watch”.")
    found = Watch(user=cast("User", request.user), test=test)
    if branch:
        found.branch = TrackedBranch.objects.get(name=branch)
    if alert is not None:
        found.alert = Alert.objects.filter(number=alert).first()
        if found.alert is None:
            raise Http404(f"There is no alert {alert}.")
    return found
