# SPDX-License-Identifier: BSD-2-Clause
"""A provider of accounts on loopback: OpenID Connect, and GitHub's OAuth. It checks for errors that clients make, and
can be made to respond wrongly.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "perfweb", "the secret of the client"
KEY = RSAKey.generate_key(2048, {"kid": "one"}, auto_kid=False)
Answer = tuple[int, object]


class Identities:
    """A provider; `person` is signed in there for each visitor, and `wrong` replaces parts of the right responses."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {"sub": "4711", "preferred_username": "ann", "email": "ann@example.org"}
        self.github: dict[str, Any] = {"id": 4711, "login": "ann", "email": None}
        self.more: dict[str, Any] = {}
        self.described: dict[str, Any] = {}
        self.wrong: dict[str, Any] = {}
        self.sign: Callable[[dict[str, Any]], str] = signed
        self.digest = "sha256"
        self.denies = False
        self.key: Any = KEY
        self.codes: dict[str, dict[str, str]] = {}
        self.requests: list[dict[str, str]] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"there": self}))
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            **self.described,
        }

    def answer(self, method: str, target: str, headers: Mapping[str, str], sent: dict[str, str]) -> Answer:
        query = dict(parse_qsl(urlsplit(target).query))
        answers: dict[tuple[str, str], Callable[[], Answer]] = {
            ("GET", "/.well-known/openid-configuration"): lambda: (200, self.description()),
            ("GET", "/keys"): lambda: (200, {"keys": [self.key.as_dict(private=False)]}),
            ("GET", "/authorize"): lambda: self._authorize(query),
            ("POST", "/token"): lambda: self._token_of_openid(headers, sent),
            ("GET", "/me"): lambda: (200, self.more) if self._is_token(headers) else (401, {}),
            ("GET", "/github/login/oauth/authorize"): lambda: self._authorize(query),
            ("POST", "/github/login/oauth/access_token"): lambda: self._token_of_github(headers, sent),
            ("GET", "/github/api/v3/user"): lambda: self._user_of_github(headers),
        }
        return answers.get((method, urlsplit(target).path), lambda: (404, {"message": "Not Found"}))()

    def _authorize(self, query: dict[str, str]) -> Answer:
        self.requests.append(query)
        assert query["client_id"] == CLIENT
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        state = {"state": query["state"]}
        if self.denies:
            return 302, f"{query['redirect_uri']}?{urlencode({'error': 'access_denied', **state})}"
        code = secrets.token_hex(8)
        self.codes[code] = {**query, "access_token": secrets.token_hex(8)}
        return 302, f"{query['redirect_uri']}?{urlencode({'code': code, **state})}"

    def _token_of_openid(self, headers: Mapping[str, str], sent: dict[str, str]) -> Answer:
        expected = f"Basic {base64.b64encode(f'{CLIENT}:{SECRET}'.encode()).decode()}"
        return self._token(sent) if headers["Authorization"] == expected else (401, {"error": "invalid_client"})

    def _token_of_github(self, headers: Mapping[str, str], sent: dict[str, str]) -> Answer:
        """GitHub takes the secret in the body, responds with JSON on request, and reports errors with status 200."""
        if headers["Accept"] != "application/json" or sent.get("client_secret") != SECRET:
            return 200, {"error": "incorrect_client_credentials"}
        return 200, self._token(sent)[1]

    def _user_of_github(self, headers: Mapping[str, str]) -> Answer:
        return (200, self.github) if self._is_token(headers) else (401, {"message": "Bad credentials"})

    def half_hash(self, token: str) -> str:
        """Return `at_hash` (OpenID Connect Core 1.0, section 3.1.3.6)."""
        digest = hashlib.new(self.digest, token.encode()).digest()
        return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()

    def _is_token(self, headers: Mapping[str, str]) -> bool:
        return headers["Authorization"] in {f"Bearer {one['access_token']}" for one in self.codes.values()}

    def _token(self, sent: dict[str, str]) -> Answer:
        granted = self.codes.get(sent["code"], {})
        challenge = base64.urlsafe_b64encode(hashlib.sha256(sent["code_verifier"].encode()).digest()).rstrip(b"=")
        if granted.get("code_challenge") != challenge.decode() or granted["redirect_uri"] != sent["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        granted.pop("code_challenge")  # it is valid once
        token: dict[str, Any] = {"access_token": granted["access_token"], "token_type": "bearer"}
        if "openid" in granted.get("scope", ""):
            now = int(time.time())
            times = {"iat": now, "exp": now + 300, "nonce": granted["nonce"]}
            named = {"iss": self.url, "aud": CLIENT, "at_hash": self.half_hash(granted["access_token"])}
            claims = {**named, **times, **self.person, **self.wrong}
            token["id_token"] = self.sign({name: value for name, value in claims.items() if value is not None})
        return 200, token


def signed(claims: dict[str, Any], key: Any = KEY, algorithm: str = "RS256") -> str:
    return jwt.encode({"alg": algorithm, "kid": "one"}, claims, key, algorithms=[algorithm])


def signed_by_another(claims: dict[str, Any]) -> str:
    return signed(claims, RSAKey.generate_key(2048))


def signed_by_nobody(claims: dict[str, Any]) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


class _Handler(BaseHTTPRequestHandler):
    there: Identities

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        status, body = self.there.answer(self.command, self.path, dict(self.headers), dict(parse_qsl(content)))
        data = json.dumps(body).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", str(body))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
