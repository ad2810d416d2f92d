# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from perfweb import redisclient
from perfweb.accounts.models import Role, Scope, User
from perfweb.accounts.tokens import issue

PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def nothing_counted() -> Iterator[None]:
    """Let every test begin with unused limits."""
    forget_limits()
    yield
    forget_limits()


def forget_limits() -> None:
    if names := list(redisclient.client().scan_iter("limit:*")):
        redisclient.client().delete(*names)


@pytest.fixture
def person(db: None) -> Callable[[Role], User]:
    """Make an account with a role, named after it."""

    def make(role: Role) -> User:
        return User.objects.create_user(role.label, password=PASSWORD, role=role)

    return make


@pytest.fixture
def signed_in(person: Callable[[Role], User]) -> Callable[[Role], Client]:
    """Return the browser of a user with a role."""

    def sign_in(role: Role) -> Client:
        client = Client()
        client.force_login(person(role))
        return client

    return sign_in


def bearer(user: User, scope: Scope = Scope.MAINTAIN) -> dict[str, str]:
    """Return the header of a program that acts for a user."""
    _, secret = issue(user, "test", scope, days=1)
    return {"Authorization": f"Bearer {secret}"}
