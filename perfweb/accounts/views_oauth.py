# SPDX-License-Identifier: BSD-2-Clause
"""Sign-in with an external account, and linking one to a local account.

Issuer and subject alone identify an account. A mail address is not requested, because the same address can belong to
another user there.
"""

from __future__ import annotations

import re
from typing import Any, cast

from django.conf import settings
from django.contrib.auth import login
from django.db import connection, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from perfweb.accounts import audit, limits, providers, sessions
from perfweb.accounts.actors import NOBODY, Actor, address_of, on_page
from perfweb.accounts.guards import acts
from perfweb.accounts.models import Identity, Means, Outcome, Role, User
from perfweb.accounts.permissions import Action
from perfweb.accounts.providers import AGAIN, Person, Provider, ProviderError
from perfweb.plaintext import plain

LONGEST_NAME = 100
LONGEST_ADDRESS = 2000
NEWCOMERS = {role.label: role for role in (Role.READER, Role.SUBMITTER)}


@require_POST
@acts(Action.SIGN_IN)
def sign_in(request: HttpRequest, key: str) -> HttpResponseBase:
    """Redirect to the provider."""
    wanted = request.POST.get("next", "")
    return _begin(request, key, next=wanted if len(wanted) <= LONGEST_ADDRESS else "")


@require_POST
@acts(Action.LINK)
def link(request: HttpRequest, key: str) -> HttpResponseBase:
    """Redirect a signed-in user to the provider of another account."""
    return _begin(request, key, owner=request.user.pk)


@require_safe
@acts(Action.SIGN_IN)
def callback(request: HttpRequest, key: str) -> HttpResponseBase:
    """Sign in, or link, the user who returned from the provider."""
    provider = _provider(key)
    limits.oauth_step(address_of(request))
    try:
        person, kept = provider.finish(request)
        if "owner" in kept:
            answer = _link(request, provider, person, kept["owner"])
        else:
            answer = _sign_in(request, provider, person, kept["next"])
        limits.oauth_succeeded(address_of(request))
        return answer
    except ProviderError as error:
        return _refused(request, provider, error)


@require_POST
@acts(Action.UNLINK)
def unlink(request: HttpRequest, key: int) -> HttpResponseBase:
    """Unlink an external account, unless it is the only way to sign in, and end the sessions that it opened."""
    owner = cast("User", request.user)
    identity = get_object_or_404(owner.identities, pk=key)
    if not owner.has_usable_password() and owner.identities.count() == 1:
        reason = "You have no password, so you could not sign in any more. Link another account first."
        return _page(request, "Not unlinked", reason, 409)
    with audit.action(on_page(request), Action.UNLINK, str(identity)):
        sessions.unlink(identity)
    return redirect("accounts:account")


def _provider(key: str) -> Provider:
    found = providers.set_up().get(key)
    if found is None:
        raise Http404("Signing in that way is not set up here.")
    return found


def _begin(request: HttpRequest, key: str, **kept: Any) -> HttpResponse:
    """The page that leads to the provider. It is not a redirect: the content policy limits forms to this site, and
    browsers apply it to the redirects of a form, which the provider may continue.
    """
    provider = _provider(key)
    limits.oauth_step(address_of(request))
    try:
        address = provider.begin(request, **kept)
    except ProviderError as error:
        return _refused(request, provider, error)
    return render(request, "accounts/go_on.html", {"address": address, "label": provider.label})


def _sign_in(request: HttpRequest, provider: Provider, person: Person, wanted: str) -> HttpResponseBase:
    identity = _known(person) or _newcomer(request, provider, person)
    user = identity.user
    if not user.is_active:
        raise ProviderError("This account is not active any more: ask an administrator of this site.", "not active")
    login(request, user)
    if not sessions.open_by(request, identity):
        request.session.flush()
        raise ProviderError(f"This account at {provider.label} was unlinked meanwhile. {AGAIN}", "unlinked meanwhile")
    audit.record(on_page(request), Action.SIGN_IN, provider.label, f"as {person.name}")
    request.session.clear_expired()
    here = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return redirect(wanted if here else resolve_url(settings.LOGIN_REDIRECT_URL))


def _link(request: HttpRequest, provider: Provider, person: Person, owner: int) -> HttpResponseBase:
    if request.user.pk != owner:
        raise ProviderError("You are no longer signed in as the same user. Sign in, and link the account again.")
    with audit.action(on_page(request), Action.LINK, provider.label, f"as {person.name}"):
        _one_at_a_time()
        known = _known(person)
        if known and known.user_id != owner:
            problem = (
                f"{person.name} at {provider.label} opens another account here. Sign in with it, and unlink it there."
            )
            raise ProviderError(plain(problem))
        if known is None:
            _identity(request.user, person)
    return redirect("accounts:account")


def _newcomer(request: HttpRequest, provider: Provider, person: Person) -> Identity:
    """Create a local account for a new user, with a name that no other account has."""
    with transaction.atomic():
        _one_at_a_time()
        if known := _known(person):
            return known
        role = NEWCOMERS.get(settings.NEWCOMER_ROLE, Role.READER)
        user = User(username=_free_name(person.name, provider.key), role=role)
        user.set_unusable_password()
        user.full_clean()
        user.save()
        identity = _identity(user, person)
        actor = Actor(user.username, user.role, Means.PAGE, user=user, address=address_of(request))
        audit.record(actor, Action.MAKE_OWN_ACCOUNT, provider.label, f"{user.get_role_display()}, as {person.name}")
    return identity


def _one_at_a_time() -> None:
    """Lock the creation of identities and names until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('identities'))")


def _known(person: Person) -> Identity | None:
    same = Identity.objects.filter(issuer=person.issuer, subject=person.subject)
    return same.select_related("user").first()


def _identity(user: User, person: Person) -> Identity:
    shown = plain(person.name)[:LONGEST_NAME]
    return Identity.objects.create(user=user, issuer=person.issuer, subject=person.subject, name=shown)


def _free_name(name: str, key: str) -> str:
    """The name at the provider with the provider's key, so that it cannot be a name that an administrator gave or that
    the service uses.
    """
    wished = re.sub(r"[^\w.+-]+", "-", name.partition("@")[0], flags=re.ASCII).strip("-.")[:LONGEST_NAME] or "user"
    candidate, number = f"{wished}@{key}", 1
    while User.objects.filter(username__iexact=candidate).exists():
        number += 1
        candidate = f"{wished}-{number}@{key}"
    return candidate


def _refused(request: HttpRequest, provider: Provider, error: ProviderError) -> HttpResponse:
    who = on_page(request)
    if who.role == NOBODY:
        who = Actor("unknown name", NOBODY, Means.PAGE, address=who.address)
    audit.record(who, Action.SIGN_IN, provider.label, error.reason, Outcome.REFUSED)
    return _page(request, f"Not signed in with {provider.label}", str(error), error.status)


def _page(request: HttpRequest, title: str, reason: str, status: int) -> HttpResponse:
    context = {"title": title, "reason": reason, "sign_in": not request.user.is_authenticated}
    return render(request, "accounts/refused.html", context, status=status)
