# SPDX-License-Identifier: BSD-2-Clause
"""The account behind a token."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import BaseModel, Field

from perfweb.accounts.permissions import LOWEST_ROLE, Action, may
from perfweb.api.identity import BEARER, actor_of
from perfweb.api.operations import read

router = Router(tags=["account"])


class Account(BaseModel):
    """The account of a token, and its permissions."""

    name: str
    role: str = Field(description="of the account")
    token: str = Field(description="name of the token")
    scope: str = Field(description="of the token: read, submit or maintain")
    expires: datetime = Field(description="when the token ends")
    may: list[str] = Field(description="permissions of this token, by the names of actions")


@read(router, "account", Account, auth=BEARER)
def get_account(request: HttpRequest, response: HttpResponse) -> Account:
    """Return the account of the request's token."""
    response.headers["Cache-Control"] = "private, no-store"
    actor = actor_of(request)
    assert actor.user is not None  # noqa: S101 (a token has an owner)
    assert actor.token is not None  # noqa: S101
    return Account(
        name=actor.name,
        role=actor.user.get_role_display(),
        token=actor.token.name,
        scope=actor.token.get_scope_display(),
        expires=actor.token.expires,
        may=[action.value for action in Action if LOWEST_ROLE[action] and may(actor, action)],
    )
