# SPDX-License-Identifier: BSD-2-Clause
"""Who asks the API to change something: the owner of the token in `Authorization: Bearer` (RFC 6750).

Sessions of browsers count for nothing here, so that no other site can have a browser change something.
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
        """Return who acts. Raises RefusedError, and NotNowError after too many wrong tokens."""
        try:
            return with_token(request, tokens.find(token))
        except tokens.TokenError as error:
            limits.wrong_secret(address_of(request))
            raise RefusedError(HTTPStatus.UNAUTHORIZED, str(error)) from None


class Permitted(Bearer):
    """The token of somebody who may do something: they are told so before anybody looks at what they send."""

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action = action

    def authenticate(self, request: HttpRequest, token: str) -> Actor:
        """Return who acts. Raises RefusedError, NotAllowedError or NotNowError."""
        actor = super().authenticate(request, token)
        if not may(actor, self.action):
            limits.write(actor.name, actor.address)
            audit.record(actor, self.action, outcome=Outcome.REFUSED)
            raise NotAllowedError(self.action)
        return actor


BEARER = Bearer()


def actor_of(request: HttpRequest) -> Actor:
    """Return who asks for a change, which BEARER has found out."""
    return cast("Actor", request.auth)  # type: ignore[attr-defined]
