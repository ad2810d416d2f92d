# SPDX-License-Identifier: BSD-2-Clause
"""The actor of a change: an account on a page, a token in the API, or a user of the server."""

from __future__ import annotations

import getpass
import ipaddress
import os
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from perfweb.accounts.models import Means, Role, Token, User

NOBODY = 0
"""The role of a user without an account: below all others."""


@dataclass(frozen=True)
class Actor:
    """The actor of a change. `role` is the effective role: a token can have a lower one than its owner."""

    name: str
    role: int
    means: Means
    user: User | None = None
    token: Token | None = None
    address: str | None = None

    @property
    def is_active(self) -> bool:
        """Whether an account is active; only active ones are queried."""
        return self.role > NOBODY and (self.user is None or self.user.is_active)


def on_page(request: HttpRequest) -> Actor:
    """Return the actor of a request for a page."""
    user = request.user
    if isinstance(user, AnonymousUser):
        return Actor("", NOBODY, Means.PAGE, address=address_of(request))
    return Actor(user.username, user.role, Means.PAGE, user=user, address=address_of(request))


def with_token(request: HttpRequest, token: Token) -> Actor:
    """Return the actor of an API request with a token."""
    user = token.user
    role = min(user.role, token.scope)
    return Actor(user.username, role, Means.API, user=user, token=token, address=address_of(request))


def on_server() -> Actor:
    """Return the actor of a command on the server, who has all permissions."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # the user of a container can have no name
        name = f"user {os.getuid()}"
    return Actor(name, Role.ADMIN, Means.COMMAND)


def address_of(request: HttpRequest) -> str | None:
    """Return the address of a request as the database writes it; None if it is not an address."""
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR", "").partition("%")[0])
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)
