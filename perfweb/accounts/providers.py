# SPDX-License-Identifier: BSD-2-Clause
"""Sign-in with an external account: GitHub (OAuth 2.0), or an OpenID Connect provider, if configured.

Authlib implements the protocols: state, PKCE, nonce, signature and claims. This module configures the providers, limits
the time of their responses, checks the claims, and has the error messages for users. It returns the user's identity
only, and keeps no token.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import OAuthError
from authlib.integrations.django_client import DjangoIntegration, DjangoOAuth2App
from authlib.integrations.requests_client import OAuth2Session
from django.conf import settings
from django.core.checks import Error
from django.http import HttpRequest
from django.urls import reverse
from joserfc.errors import JoseError

from perfweb.boundedread import BoundedAdapter
from perfweb.inputlimits import PROVIDER_BYTES

SECONDS = (5, 10)
"""Time limits for a connection to a provider, and for each read."""
PATIENCE = 600
"""Seconds that a sign-in at the provider can take."""
LONGEST_SUBJECT = 255
SIGNED_WITH = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Accepted signature algorithms, which only the provider can use. Its own list may have "none", and those with a
shared secret. Authlib cannot check `at_hash` for the name "Ed25519" of RFC 9864.
"""
NAMES = ("preferred_username", "nickname", "name")
"""Claims with a user's name, best first; some providers send them with the user info only."""
AGAIN = "Start again on the page “Sign in”."
SPENT = {"invalid_grant", "bad_verification_code"}
"""Errors for a code that has expired or was used before: RFC 6749, section 5.2, and GitHub's."""
ANSWERS_NAME_ISSUER = "authorization_response_iss_parameter_supported"
BASIC, POSTED = "client_secret_basic", "client_secret_post"


class ProviderError(Exception):
    """The external sign-in failed; the message has what the user can do, and `reason` is logged."""

    def __init__(self, message: str, reason: str = "", status: HTTPStatus = HTTPStatus.FORBIDDEN) -> None:
        super().__init__(message)
        self.reason, self.status = reason or message, status


def _bound(session: requests.Session) -> None:
    for scheme in ("https://", "http://"):
        session.mount(scheme, BoundedAdapter(PROVIDER_BYTES, sum(SECONDS)))


class _Session(OAuth2Session):
    """Authlib's session, which limits the size of responses."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        _bound(self)


class _App(DjangoOAuth2App):
    client_cls = _Session


@dataclass(frozen=True)
class Person:
    """The identity of a user at a provider: `subject` never changes there, `name` may."""

    issuer: str
    subject: str
    name: str


@dataclass(frozen=True)
class Provider(ABC):
    """A provider of accounts: `key` is part of addresses and `label` of pages."""

    key: str
    label: str
    issuer: str
    client_id: str
    secret_file: str

    def begin(self, request: HttpRequest, **kept: Any) -> str:
        """Return the address of the sign-in page; `kept` is stored until the user returns. Raises ProviderError."""
        with self._troubles():
            app = self._app()
            here = request.build_absolute_uri(reverse("accounts:oauth-callback", args=[self.key]))
            made = app.create_authorization_url(here)
            app.save_authorize_data(request, redirect_uri=here, begun=time.time(), kept=kept, **made)
        return str(made["url"])

    def finish(self, request: HttpRequest) -> tuple[Person, dict[str, Any]]:
        """Return the user who returned, and the stored value. Raises ProviderError."""
        sessions: Any = DjangoIntegration(self.key)
        state = request.GET.get("state", "")
        begun = sessions.get_state_data(request.session, state)
        if begun is None or begun["begun"] < time.time() - PATIENCE:
            raise ProviderError(
                f"This sign-in was not started here, has expired, or has ended. {AGAIN}", "unknown state"
            )
        named = request.GET.getlist("iss")
        wrong = [name for name in named if name not in self._issuers()]
        if wrong or len(named) > 1:  # RFC 9207, section 2.4, also in an error; RFC 6749, section 3.1: once
            sessions.clear_state_data(request.session, state)
            reason = f"it is from the issuer {wrong[0]!r:.200}" if wrong else "it names its issuer more than once"
            raise self._invalid(reason, HTTPStatus.FORBIDDEN)
        if "error" in request.GET:
            sessions.clear_state_data(request.session, state)
            words = f"{self.label} refused the sign-in, or you did not allow it to share your identity. {AGAIN}"
            raise ProviderError(words, f"{self.label} returned {request.GET['error']}")
        with self._troubles():
            app = self._app()
            if app.server_metadata.get(ANSWERS_NAME_ISSUER) is True and not named:
                sessions.clear_state_data(request.session, state)
                raise self._invalid("it names no issuer, which this provider always does", HTTPStatus.FORBIDDEN)
            token = app.authorize_access_token(request, claims_options=self._claims())
            person = self._person(app, token)
        if not (0 < len(person.subject) <= LONGEST_SUBJECT and person.subject.isprintable()):
            raise self._invalid("a subject that is empty, too long, or not printable")
        return person, begun["kept"]

    @abstractmethod
    def _app(self) -> Any:
        """Authlib's client, with the provider's current metadata."""

    @abstractmethod
    def _person(self, app: Any, token: dict[str, Any]) -> Person:
        """Return the signed-in user at the provider."""

    def _issuers(self) -> set[str]:
        """Return the names by which the provider identifies itself in its responses."""
        return {self.issuer}

    def _claims(self) -> dict[str, Any] | None:
        """Return the requirements of an ID token."""
        return None

    def _client(self, scope: str, method: str, **addresses: Any) -> Any:
        options = {"code_challenge_method": "S256", "token_endpoint_auth_method": method, "default_timeout": SECONDS}
        return _App(
            DjangoIntegration(self.key),
            self.key,
            client_id=self.client_id,
            client_secret=self._secret(),
            client_kwargs={"scope": scope, **options},
            **addresses,
        )

    def _secret(self) -> str:
        try:
            return Path(self.secret_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            words = f"Sign-in with {self.label} is not configured completely. Contact an administrator of this site."
            raise ProviderError(words, f"{self.secret_file}: {error}", HTTPStatus.SERVICE_UNAVAILABLE) from None

    def _invalid(self, reason: str, status: HTTPStatus = HTTPStatus.BAD_GATEWAY) -> ProviderError:
        words = f"The response of {self.label} is invalid. {AGAIN} If that fails, contact an administrator."
        return ProviderError(words, reason, status)

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        """Map errors of the connection to the provider to messages for users."""
        try:
            yield
        except requests.RequestException as error:
            words = f"{self.label} does not answer now. Try again in a minute, or sign in another way."
            raise ProviderError(words, f"{type(error).__name__}: {error}", HTTPStatus.BAD_GATEWAY) from None
        except OAuthError as error:
            if error.error in SPENT:
                words = f"This sign-in has expired, or was used before. {AGAIN}"
                raise ProviderError(words, f"{self.label} returned {error.error}") from None
            raise self._invalid(f"{type(error).__name__}: {error}") from None
        except (
            AuthlibBaseError,
            JoseError,
            ArithmeticError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            raise self._invalid(f"{type(error).__name__}: {error}") from None


class GitHub(Provider):
    """GitHub, or GitHub Enterprise Server, by OAuth 2.0: its API returns the owner of the token."""

    def _app(self) -> Any:
        there = f"{self.issuer}/login/oauth"
        return self._client("", POSTED, authorize_url=f"{there}/authorize", access_token_url=f"{there}/access_token")

    def _issuers(self) -> set[str]:
        return {self.issuer, f"{self.issuer}/login/oauth"}

    def _person(self, app: Any, token: dict[str, Any]) -> Person:
        api = "https://api.github.com" if self.issuer == "https://github.com" else f"{self.issuer}/api/v3"
        answer = app.get(f"{api}/user", token=token, headers={"Accept": "application/vnd.github+json"})
        answer.raise_for_status()
        reply = answer.json()
        return Person(self.issuer, _identifier(reply["id"]), str(reply["login"]))


class OpenId(Provider):
    """A provider of OpenID Connect: endpoints are in its metadata, the user's identity in an ID token."""

    def _app(self) -> Any:
        with requests.Session() as session:
            _bound(session)
            answer = session.get(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration", timeout=SECONDS)
        answer.raise_for_status()
        metadata = answer.json()
        if metadata["issuer"] != self.issuer:
            raise self._invalid(f"it calls itself {metadata['issuer']!r}")
        addresses = {name: metadata[name] for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
        if "userinfo_endpoint" in metadata:
            addresses["userinfo_endpoint"] = metadata["userinfo_endpoint"]
        for address in list(addresses.values()):
            if not is_safe(address):
                raise self._invalid(f"the address {address!r} is not https")
        addresses[ANSWERS_NAME_ISSUER] = metadata.get(ANSWERS_NAME_ISSUER, False)
        offered = set(metadata.get("id_token_signing_alg_values_supported", ["RS256"]))
        signatures = [name for name in SIGNED_WITH if name in offered]
        method = BASIC if BASIC in metadata.get("token_endpoint_auth_methods_supported", [BASIC]) else POSTED
        return self._client(
            "openid profile", method, **addresses, id_token_signing_alg_values_supported=signatures or ["RS256"]
        )

    def _claims(self) -> dict[str, Any]:
        # Authlib checks issuer and audience only if their expected values are given; all other claims always.
        return {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": self.client_id},
        }

    def _person(self, app: Any, token: dict[str, Any]) -> Person:
        claims = token["userinfo"]  # by Authlib, from the ID token
        if not any(map(claims.get, NAMES)) and "userinfo_endpoint" in app.server_metadata:
            more = app.userinfo(token=token)
            if more["sub"] != claims["sub"]:
                raise self._invalid("the ID token and the user's information are about different people")
            claims |= more
        names = (claims.get(claim) for claim in (*NAMES, "sub"))
        return Person(self.issuer, _text(claims["sub"]), next(str(name) for name in names if name))


def _identifier(value: object) -> str:
    """Return a user's number as text. Raises TypeError for another value: True would be user 1."""
    if type(value) is not int:
        raise TypeError(f"the user's number is {value!r:.100}")
    return str(value)


def _text(value: object) -> str:
    """Return a text. Raises TypeError for another value, because two objects may have the same text form."""
    if not isinstance(value, str):
        raise TypeError(f"the subject is {value!r:.100}")
    return value


def set_up() -> dict[str, Provider]:
    """Return the configured external providers by their keys."""
    found: list[Provider] = []
    if settings.GITHUB_CLIENT_ID:
        github = settings.GITHUB_URL
        label = "GitHub" if github == "https://github.com" else f"GitHub at {urlsplit(github).netloc}"
        found.append(GitHub("github", label, github, settings.GITHUB_CLIENT_ID, settings.GITHUB_SECRET_FILE))
    if settings.OIDC_CLIENT_ID:
        issuer = settings.OIDC_ISSUER
        label = settings.OIDC_NAME or urlsplit(issuer).netloc
        found.append(OpenId("oidc", label, issuer, settings.OIDC_CLIENT_ID, settings.OIDC_SECRET_FILE))
    return {provider.key: provider for provider in found}


def is_safe(address: str) -> bool:
    """Return whether the connection to an address is encrypted or local."""
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in {"127.0.0.1", "::1", "localhost"})


def problems() -> list[Error]:
    """Report at start the settings that cannot work."""
    found = []
    if settings.NEWCOMER_ROLE not in {"reader", "submitter"}:
        found.append(Error("PERFWEB_NEWCOMER_ROLE is neither reader nor submitter", hint="others are given by hand"))
    for provider in set_up().values():
        name = f"PERFWEB_{provider.key.upper()}"
        if not is_safe(provider.issuer):
            address = "URL" if provider.key == "github" else "ISSUER"
            found.append(Error(f"{name}_{address} is “{provider.issuer}”: give it an address with https://"))
        try:
            provider._secret()
        except ProviderError as error:
            hint = f"{name}_SECRET_FILE has to name a file with the client's secret"
            found.append(Error(error.reason, hint=hint))
    return found
