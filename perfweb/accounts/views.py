# SPDX-License-Identifier: BSD-2-Clause
"""Signing in and out, passwords, the page of an account with its tokens, and the log."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, cast

from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import AuthenticationForm
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.views.decorators.http import require_POST, require_safe

from perfweb.accounts import audit, limits, providers, tokens
from perfweb.accounts.actors import Actor, address_of, on_page
from perfweb.accounts.forms import LogForm, PasswordForm, SignInForm, TokenForm
from perfweb.accounts.guards import acts
from perfweb.accounts.models import Entry, Means, Outcome, Token, User
from perfweb.accounts.permissions import LOWEST_ROLE, Action, may
from perfweb.parameters import number_in

LINES = 50
"""Lines of the log on a page."""


class SignIn(auth_views.LoginView):
    """Signs in with name and password, and redirects to `next` if that is on this site."""

    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """Offer the external sign-ins, too."""
        return super().get_context_data(providers=providers.set_up().values(), **more)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        audit.record(on_page(self.request), Action.SIGN_IN)
        self.request.session.clear_expired()
        return answer

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        # Only existing names: users sometimes type a password in their place.
        user = User.objects.filter(username__iexact=form.data.get("username", "").replace("\0", "")).first()
        who = user.username if user else "unknown name"
        actor = Actor(who, 0, Means.PAGE, user=user, address=address_of(self.request))
        audit.record(actor, Action.SIGN_IN, outcome=Outcome.REFUSED)
        return super().form_invalid(form)


class SignOut(auth_views.LogoutView):
    """Ends the session."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            audit.record(on_page(request), Action.SIGN_OUT)
        return super().post(request, *args, **kwargs)


class PasswordChange(auth_views.PasswordChangeView):
    """Changes the password, which ends all other sessions."""

    template_name = "accounts/password.html"
    form_class = PasswordForm
    success_url = reverse_lazy("accounts:account")

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"address": address_of(self.request)}

    def form_invalid(self, form: Any) -> HttpResponse:
        if form.data.get("old_password") and "old_password" in form.errors:
            audit.record(on_page(self.request), Action.CHANGE_PASSWORD, outcome=Outcome.REFUSED)
        return super().form_invalid(form)

    def form_valid(self, form: Any) -> HttpResponse:
        with audit.action(on_page(self.request), Action.CHANGE_PASSWORD):
            return super().form_valid(form)


class PasswordSet(auth_views.PasswordResetConfirmView):
    """Sets a password by a link that works once; `manage.py account` makes one."""

    template_name = "accounts/password.html"
    success_url = reverse_lazy("accounts:sign-in")

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show the form, or that the link is wrong. Raises limits.NotNowError after too many wrong ones."""
        answer = super().dispatch(*args, **kwargs)
        if not self.validlink and answer.status_code == HTTPStatus.OK:
            limits.wrong_secret(address_of(self.request))
        return answer

    def form_valid(self, form: Any) -> HttpResponse:
        actor = Actor(form.user.username, form.user.role, Means.PAGE, form.user, address=address_of(self.request))
        with audit.action(actor, Action.SET_PASSWORD):
            return super().form_valid(form)


@require_safe
@acts(Action.SEE_ACCOUNT)
def account(request: HttpRequest) -> HttpResponse:
    """Show an account to its owner."""
    return _account(request, TokenForm(_owner(request)))


@require_POST
@acts(Action.MAKE_TOKEN)
def make_token(request: HttpRequest) -> HttpResponse:
    """Make a token and show its secret once."""
    owner = _owner(request)
    form = TokenForm(owner, request.POST)
    if not form.is_valid():
        return _account(request, form, status=422)
    wanted = form.cleaned_data
    try:
        with audit.action(on_page(request), Action.MAKE_TOKEN, wanted["name"]) as entry:
            token, secret = tokens.issue(owner, wanted["name"], wanted["scope"], wanted["days"])
            entry.detail = f"{token.get_scope_display()}, until {token.expires:%Y-%m-%d}"
    except tokens.TokenError as error:
        form.add_error(None, str(error))
        return _account(request, form, status=422)
    return _account(request, TokenForm(owner), made=token, secret=secret)


@require_POST
@acts(Action.REVOKE_TOKEN)
def revoke_token(request: HttpRequest, key: int) -> HttpResponseBase:
    """Revoke one of the user's own tokens."""
    token = get_object_or_404(_owner(request).tokens, pk=key)
    with audit.action(on_page(request), Action.REVOKE_TOKEN, token.name):
        tokens.revoke(token)
    return redirect("accounts:account")


@require_safe
@acts(Action.READ_LOG)
def log(request: HttpRequest) -> HttpResponse:
    """Show the audit log, newest first."""
    form = LogForm(request.GET)
    before = number_in(request, "before")
    found = list(_wanted(form.cleaned_data, before)[: LINES + 1]) if form.is_valid() else []
    older = request.GET.copy()
    if len(found) > LINES:
        older["before"] = str(found[LINES - 1].pk)
    context = {"form": form, "lines": found[:LINES], "older": older.urlencode() if len(found) > LINES else ""}
    return render(request, "accounts/log.html", context, status=200 if form.is_valid() else 400)


def _wanted(terms: dict[str, Any], before: int | None) -> QuerySet[Entry]:
    exact = {name: terms[name] for name in ("who", "action", "means", "outcome") if terms[name]}
    found = Entry.objects.filter(**exact)
    if terms["q"]:
        found = found.filter(Q(subject__icontains=terms["q"]) | Q(detail__icontains=terms["q"]))
    if terms["since"]:
        found = found.filter(time__date__gte=terms["since"])
    return found if before is None else found.filter(pk__lt=before)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """Show what to do about a form without its token; the server's log has the reason."""
    words = "This form has expired, or is from another site. Go back, reload the page, and send it again."
    return render(request, "403.html", {"exception": words}, status=403)


def _owner(request: HttpRequest) -> User:
    return cast("User", request.user)  # `acts` guarantees it


def _account(
    request: HttpRequest, form: TokenForm, *, made: Token | None = None, secret: str = "", status: int = 200
) -> HttpResponse:
    owner = _owner(request)
    identities = owner.identities.all()
    linked = {identity.issuer for identity in identities}
    context = {
        "identities": identities,
        "providers": [provider for provider in providers.set_up().values() if provider.issuer not in linked],
        "owner": owner,
        "allowed": [action.value for action in Action if LOWEST_ROLE[action] and may(owner, action)],
        "tokens": owner.tokens.all(),
        "form": form,
        "made": made,
        "secret": secret,
        "reads_log": may(owner, Action.READ_LOG),
    }
    return render(request, "accounts/account.html", context, status=status)
