# SPDX-License-Identifier: BSD-2-Clause
"""Tokens: creation, and the lookup of their owner."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from perfweb.accounts.models import Scope, Token, User

PREFIX = "perfweb_"
"""The prefix by which scanners for leaked secrets find a token; 43 letters, digits, - and _ follow."""

MOST = 20
"""Max number of valid tokens of an account."""

_USE_KNOWN_FOR = timedelta(minutes=1)


class TokenError(ValueError):
    """The token is invalid, or cannot be created; the message has the reason and what to do."""


def issue(user: User, name: str, scope: Scope, days: int) -> tuple[Token, str]:
    """Make a token. Return it with its secret, which is not stored. Raises TokenError."""
    now = timezone.now()
    live = user.tokens.filter(revoked__isnull=True, expires__gt=now).count()
    if live >= MOST:
        raise TokenError(f"There are {live} tokens already: revoke one that is not needed.")
    secret = f"{PREFIX}{secrets.token_urlsafe(32)}"
    token = Token.objects.create(
        user=user, name=name, scope=scope, digest=_digest(secret), expires=now + timedelta(days=days)
    )
    return token, secret


def find(secret: str) -> Token:
    """Return the token with this secret and its owner, and note that it was used. Raises TokenError."""
    token = Token.objects.select_related("user").filter(digest=_digest(secret)).first()
    if token is None or not token.user.is_active:
        raise TokenError("this token is not known here: make one on the page of your account")
    if token.revoked:
        raise TokenError(f"the token “{token}” was revoked on {token.revoked:%Y-%m-%d}: make a new one")
    now = timezone.now()
    if token.expires <= now:
        raise TokenError(f"the token “{token}” expired on {token.expires:%Y-%m-%d}: make a new one")
    known = Q(used__isnull=True) | Q(used__lt=now - _USE_KNOWN_FOR)
    if token.used is None or token.used < now - _USE_KNOWN_FOR:
        Token.objects.filter(known, pk=token.pk).update(used=now)
    return token


def revoke(token: Token) -> None:
    """Make a token invalid from now on."""
    Token.objects.filter(pk=token.pk, revoked__isnull=True).update(revoked=timezone.now())


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
