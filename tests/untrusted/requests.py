# SPDX-License-Identifier: BSD-2-Clause
"""The parsers of HTTP requests: addresses, headers, forms and bodies, and responses of an identity provider."""

from __future__ import annotations

import io
from typing import Any, ClassVar

from authlib.integrations.base_client.sync_openid import OpenIDMixin
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, QueryDict, parse_cookie
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError
from django.test import RequestFactory, override_settings
from django.utils.cache import get_conditional_response
from django.utils.http import parse_etags, parse_http_date_safe
from joserfc import jws
from joserfc.jwk import OctKey
from pydantic import ValidationError

from perfweb import parameters, proxies
from perfweb.accounts import providers
from perfweb.api.bodies import StrictParser
from perfweb.api.submissions import NewSubmission
from perfweb.figures.timelines import RangeError, moment, read_window
from perfweb.jsontext import JsonError
from perfweb.rawdata import downloads
from perfweb.serving import malformed, uploads
from tests.untrusted.hostile import DENSE_JSON, Parser, repeated, within

_FACTORY = RequestFactory()
_PART = "--x\r\nContent-Disposition: form-data; name=a"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _posted(text: str, kind: str) -> HttpRequest:
    return _FACTORY.post("/", _bytes(text), content_type=kind)


def _form(text: str) -> object:
    return _posted(text, "application/x-www-form-urlencoded").POST


@override_settings(DATA_UPLOAD_MAX_NUMBER_FIELDS=20)
def _multipart(text: str) -> object:
    """Django copies up to 64 KiB for each part, and refuses more than FORM_FIELDS parts, so larger numbers are not
    possible here.
    """
    request = _posted(text, "multipart/form-data; boundary=x")
    return request.POST, request.FILES


def _header(name: str) -> Any:
    def read(text: str) -> object:
        request = HttpRequest()
        request.method = "GET"
        request.META[f"HTTP_{name}"] = request.META[name] = text
        malformed.check(request)
        return get_conditional_response(request, etag='"a"', last_modified=1)

    return read


class _HeadError(Exception):
    """The head of a request is too long."""


def _field(name: bytes) -> Any:
    """A request with one header, as the web server makes it, and what Django reads of it."""

    def read(text: str) -> object:
        scope: Any = {"type": "http", "method": "GET", "path": "/", "headers": [(name, _bytes(text))]}
        if uploads.head_problem(scope):
            raise _HeadError
        request = ASGIRequest(scope, io.BytesIO())
        malformed.check(request)
        return request.accepted_types

    return read


def _range(text: str) -> object:
    body = downloads.text_body("a", b"content", "tag", None)
    return downloads._range(_FACTORY.get("/", headers={"Range": text, "If-Range": text}), body)


def _query(text: str) -> object:
    request = HttpRequest()
    query = QueryDict(mutable=True)
    query.setlist("a", [text])
    request.GET = query  # type: ignore[assignment]
    for read in (parameters.number_in, parameters.percent_in, parameters.flag_in, parameters.text_in):
        try:
            read(request, "a")
        except parameters.ParameterError:
            continue
    return parameters.choice_in(request, "a", ["b", "c"])


def _window(text: str) -> object:
    return [read_window(by, text, text, text) for by in ("commit", "run")]


def _body(text: str) -> object:
    return NewSubmission.model_validate(StrictParser().parse_body(_posted(text, "application/json")))


def _forwarded(text: str) -> object:
    trusted = proxies.TrustedProxies(None, proxies.networks("10.0.0.0/8"))  # type: ignore[arg-type]
    headers = [(b"x-forwarded-for", _bytes(text)), (b"x-forwarded-proto", _bytes(text))]
    return trusted._seen({"headers": headers, "client": ("10.0.0.1", 1), "scheme": "http"})  # type: ignore[typeddict-item]


_KEY = OctKey.generate_key(256, {"kid": "one"})
_PROVIDER = providers.OpenId("oidc", "Example", "https://op.example", "perfweb", "")


class _Described(OpenIDMixin):
    """Authlib's client, once it has read the metadata and the keys of a provider."""

    client_id = _PROVIDER.client_id
    server_metadata: ClassVar[dict[str, Any]] = {
        "issuer": _PROVIDER.issuer,
        "jwks": {"keys": [_KEY.as_dict(private=True)]},
        "id_token_signing_alg_values_supported": ["HS256"],
    }

    def load_server_metadata(self) -> dict[str, Any]:
        return self.server_metadata


def _id_token(text: str) -> object:
    app = _Described()
    with _PROVIDER._troubles():
        claims = app.parse_id_token({"id_token": text}, nonce="n", claims_options=_PROVIDER._claims())
        return _PROVIDER._person(app, {"userinfo": claims})


def _claims(text: str) -> object:
    """A token with a valid signature whose content is the text."""
    return _id_token(jws.serialize_compact({"alg": "HS256", "kid": "one"}, _bytes(text), _KEY, algorithms=["HS256"]))


_CLAIMS = f'{{"iss": "{_PROVIDER.issuer}", "aud": "perfweb", "nonce": "n", "iat": 1, "exp": 9999999999, "sub": '

_PARAMETERS = {
    **within('a/a;a="', "", "run of ';'", "run of '\"", "run of '\\\\"),
    **repeated("a/a", ';a*{0}*="b"'),
    **repeated("a/a", ';a="b;'),
    **repeated("", "a/a;q=1,"),
}

PARSERS = [
    Parser("ID token", _id_token, (providers.ProviderError,), within("eyJhbGciOiJIUzI1NiJ9.", ".AAAA", "run of '")),
    Parser(
        "claims of an ID token",
        _claims,
        (providers.ProviderError,),
        {
            **within(_CLAIMS, "}", "nested", "run of '9"),
            **within(f'{_CLAIMS}"4711", "preferred_username": "', '"}', "run of 'a", "run of '\\\\"),
            **repeated(f'{_CLAIMS}"4711", ', '"a{0}": 1, ', '"b": 1}'),
        },
    ),
    Parser("query string", QueryDict, (SuspiciousOperation,), {**repeated("", "a{0}=b&"), **repeated("", "&")}),
    Parser("value of a query parameter", _query, (parameters.ParameterError,)),
    Parser("window of a timeline", _window, (RangeError,)),
    Parser("date or time", moment, (RangeError,), within("2026-01-01T", "")),
    Parser("cookies", parse_cookie, (), {**within('a="', '"'), **repeated("", "a{0}=b;")}),
    Parser("form", _form, (SuspiciousOperation,), {**repeated("", "a{0}=b&"), **repeated("", "a=%41%42&")}),
    Parser(
        "form with files",
        _multipart,
        (MultiPartParserError, SuspiciousOperation, UnreadablePostError),
        {
            **within(f"{_PART}\r\n\r\n", "\r\n--x--\r\n"),
            **within(f"{_PART}; filename=", "\r\n\r\na\r\n--x--\r\n"),
            **within(f"{_PART}\r\nContent-Type: text/plain; charset=", "\r\n\r\na\r\n--x--\r\n"),
            **within(f"{_PART}\r\nContent-Transfer-Encoding: base64\r\n\r\n", "\r\n--x--\r\n"),
            **repeated("", f"{_PART}{{0}}\r\n\r\n1\r\n", "--x--\r\n"),
            **repeated("", f"{_PART}; filename=b{{0}}\r\n\r\n1\r\n", "--x--\r\n"),
            **repeated(f"{_PART}\r\n\r\n", "\r\n--"),
            **repeated(f"{_PART}\r\n\r\n", "\r\n--y"),
        },
    ),
    Parser(
        "body of an API request",
        _body,
        (ValueError, JsonError, ValidationError),
        {
            **repeated('{"testbed": "a", "tunables": {', '"a{0}": "b", ', '"a": "b"}}'),
            **within('{"testbed": "a", "patch": "', '"}', "run"),
            **within('{"testbed": ', "}", "nested", "lists"),
            **DENSE_JSON,
        },
    ),
    Parser("header Range", _range, (downloads._UnsatisfiableError,), within("bytes=", "")),
    *(
        Parser(f"header {name}", _header(name), (BadRequest,))
        for name in ("IF_NONE_MATCH", "IF_MATCH", "IF_MODIFIED_SINCE", "IF_UNMODIFIED_SINCE", "CONTENT_LENGTH")
    ),
    *(
        Parser(f"header {name.decode()}", _field(name), (_HeadError, BadRequest, ValueError, LookupError), _PARAMETERS)
        for name in (b"content-type", b"accept")
    ),
    Parser("entity tags", parse_etags, (), repeated("", '"a", ')),
    Parser("date of HTTP", parse_http_date_safe, ()),
    Parser("header X-Forwarded-For", _forwarded, (), repeated("", "10.0.0.1,")),
]
"""Names of the API (perfweb.api.operations) are checked by pydantic, whose patterns take linear time (Rust's regex)."""
