# SPDX-License-Identifier: BSD-2-Clause
"""The account that changes something by the API: the owner of the token in `Authorization: Bearer` (RFC 6750).

Browser sessions are ignored, so that no other site can make a browser change something.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import cast

from django.http import HttpRequest
from ninja.security import HttpBearer

from perfweb.accounts import audit, limits, tokens
from perfweb.accounts.actors import Actor, address_of, with_token
from perfweb.accounts.models import Outcome
from perfweb.accounts.permissions import Action, NotAllowedError, may
from perfweb.api.problems import RefusedError


class Bearer(HttpBearer):
    """A token that its owner made on the page of the account."""

    def authenticate(self, request: HttpRequest, token: str) -> Actor:
        """Return the actor. Raises RefusedError, and NotNowError after too many wrong tokens."""
        try:
            return with_token(request, tokens.find(token))
        except tokens.TokenError as error:
            limits.wrong_secret(address_of(request))
            raise RefusedError(HTTPStatus.UNAUTHORIZED, str(error)) from None


class Permitted(Bearer):
    """The token of an account with the permission, which is checked before the body is parsed."""

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action = action

    def authenticate(self, request: HttpRequest, token: str) -> Actor:
        """Return the actor. Raises RefusedError, NotAllowedError or NotNowError."""
        actor = super().authenticate(request, token)
        if not may(actor, self.action):
            limits.write(actor.name, actor.address)
            audit.record(actor, self.action, outcome=Outcome.REFUSED)
            raise NotAllowedError(self.action)
        return actor


BEARER = Bearer()


def actor_of(request: HttpRequest) -> Actor:
    """Return the actor of a change, as authenticated by BEARER."""
    return cast("Actor", request.auth)  # type: ignore[attr-defined]
