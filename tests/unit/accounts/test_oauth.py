# SPDX-License-Identifier: BSD-2-Clause
"""Sign-in with an external account: with a correct provider, and with a faulty one."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import urllib3
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.test import Client
from joserfc.jwk import ECKey, OKPKey, RSAKey
from pytest_django import Settings

from perfweb.accounts import providers, sessions
from perfweb.accounts.limits import OAUTH_STEPS
from perfweb.accounts.models import Entry, Identity, Role, User
from perfweb.inputlimits import PROVIDER_BYTES
from tests.unit.accounts.conftest import PASSWORD
from tests.unit.accounts.provider import CLIENT, SECRET, Identities, signed, signed_by_another, signed_by_nobody

pytestmark = pytest.mark.django_db
Person = Callable[[Role], User]


@pytest.fixture
def there(settings: Settings, tmp_path: Path) -> Iterator[Identities]:
    """A configured provider, also as GitHub Enterprise Server."""
    started = Identities()
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n", encoding="ascii")
    settings.OIDC_ISSUER, settings.GITHUB_URL = started.url, f"{started.url}/github"
    settings.OIDC_CLIENT_ID = settings.GITHUB_CLIENT_ID = CLIENT
    settings.OIDC_SECRET_FILE = settings.GITHUB_SECRET_FILE = str(secret)
    settings.OIDC_NAME = "Example University"
    yield started
    started.stop()


def begun(client: Client, key: str = "oidc", action: str = "sign-in", **sent: str) -> str:
    """The address of a button's form."""
    page = client.post(f"/account/{action}/{key}/", sent).content.decode()
    (address,) = re.findall(r'content="0; url=([^"]+)"', page)
    return html.unescape(address)


def allowed(address: str) -> str:
    """The address to which the provider redirects a signed-in user."""
    answer = urllib3.request("GET", address, redirect=False)
    assert answer.status == 302
    back = urlsplit(answer.headers["Location"])
    assert back.netloc == "testserver"
    return f"{back.path}?{back.query}"


def through(client: Client, key: str = "oidc", action: str = "sign-in", **sent: str) -> Any:
    """The whole sign-in, there and back."""
    return client.get(allowed(begun(client, key, action, **sent)))


def log() -> list[tuple[str, str, str, str]]:
    return list(Entry.objects.order_by("pk").values_list("who", "action", "subject", "outcome"))


@pytest.mark.parametrize(("key", "label"), [("oidc", "Example University"), ("github", "GitHub at ")])
def test_who_comes_for_the_first_time_gets_an_account_and_has_it_the_next_time(
    client: Client, there: Identities, key: str, label: str
) -> None:
    assert label in client.get("/account/sign-in/").content.decode()
    assert through(client, key).headers["Location"] == "/account/"
    user = User.objects.get()
    assert (user.username, user.role, user.email, user.has_usable_password()) == (f"ann@{key}", Role.READER, "", False)
    assert f"ann@{key}" in client.get("/account/").content.decode()
    there.person["preferred_username"] = there.github["login"] = "ann-married"
    other = Client()
    assert through(other, key, next="/account/log/").headers["Location"] == "/account/log/"
    assert User.objects.get().username == f"ann@{key}"
    made = [(who, action, outcome) for who, action, _, outcome in log()]
    signed_in = (f"ann@{key}", "sign in", "done")
    assert made == [(f"ann@{key}", "make own account", "done"), signed_in, signed_in]
    assert Entry.objects.first().detail == "as ann-married"  # type: ignore[union-attr]


def test_newcomers_get_the_role_that_is_set(client: Client, there: Identities, settings: Settings) -> None:
    settings.NEWCOMER_ROLE = "submitter"
    through(client)
    assert User.objects.get().role == Role.SUBMITTER
    settings.NEWCOMER_ROLE = "admin"
    there.person["sub"] = "4712"
    through(Client())
    assert [user.role for user in User.objects.order_by("pk")] == [Role.SUBMITTER, Role.READER]
    assert ["neither reader nor submitter" in error.msg for error in providers.problems()] == [True]


def test_only_the_identity_of_a_user_is_requested_and_kept(client: Client, there: Identities) -> None:
    through(client)
    assert there.requests[0]["scope"] == "openid profile"
    (code,) = there.codes.values()
    kept = str([list(table.objects.values()) for table in (User, Identity, Entry)])
    assert code["access_token"] not in kept + str([session.get_decoded() for session in Session.objects.all()])
    assert not [name for name, _ in client.session.items() if "state" in name]
    through(Client(), "github")
    assert "scope" not in there.requests[1] or not there.requests[1]["scope"]


def test_an_equal_address_of_mail_opens_nothing(client: Client, there: Identities) -> None:
    User.objects.create_user("ann", email="ann@example.org", password=PASSWORD, role=Role.ADMIN)
    for verified in (False, True):
        there.person["email_verified"] = verified
        through(Client())
    assert {user.username: user.role for user in User.objects.all()} == {"ann": Role.ADMIN, "ann@oidc": Role.READER}


@pytest.mark.parametrize(
    ("called", "made"),
    [
        ("ann@example.org", "ann@oidc"),
        ("unknown-senders", "unknown-senders@oidc"),
        ("Ann Müller\x1b[1m", "Ann-M-ller-1m@oidc"),
        ("名前", "user@oidc"),
        ("x" * 300, "x" * 100 + "@oidc"),
    ],
)
def test_any_name_there_becomes_one_that_nobody_has_here(there: Identities, called: str, made: str) -> None:
    there.person["preferred_username"] = called
    through(Client())
    there.person["sub"] = "4712"
    through(Client())
    second = made.replace("@", "-2@")
    assert {user.username for user in User.objects.all()} == {made, second}


def test_a_name_that_the_token_lacks_is_requested(client: Client, there: Identities) -> None:
    there.person = {"sub": "4711"}
    through(Client())
    there.person, there.described = {"sub": "4712"}, {"userinfo_endpoint": f"{there.url}/me"}
    there.more = {"sub": "4711", "name": "Ann"}
    assert through(client).status_code == 502
    there.more = {"sub": "4712", "name": "Bob", "email": "ann@example.org"}
    through(client)
    assert [user.username for user in User.objects.order_by("pk")] == ["4711@oidc", "Bob@oidc"]


@pytest.mark.parametrize(
    ("wrong", "sign", "reason"),
    [
        ({"iss": "https://elsewhere.example"}, None, "iss"),
        ({"aud": "another client"}, None, "aud"),
        ({"aud": "another client", "azp": CLIENT}, None, "aud"),
        ({"aud": None}, None, "aud"),
        ({"nonce": "another"}, None, "nonce"),
        ({"nonce": None, "nonce_supported": False}, None, "nonce"),
        ({"exp": int(time.time()) - 3600, "iat": int(time.time()) - 7200}, None, "xpired"),
        ({"exp": None}, None, "exp"),
        ({"sub": None}, None, "sub"),
        ({"sub": ""}, None, "subject"),
        ({"sub": "x" * 256}, None, "subject"),
        ({}, signed_by_another, "ignature"),
        ({}, signed_by_nobody, "lgorithm"),
        ({}, lambda _: "nonsense", ""),
    ],
)
def test_a_token_that_is_not_for_this_sign_in_opens_nothing(
    client: Client, there: Identities, wrong: dict[str, Any], sign: Any, reason: str
) -> None:
    there.wrong = wrong
    there.sign = sign or there.sign
    answer = through(client)
    assert answer.status_code == 502
    page = answer.content.decode()
    assert "is invalid. Start again" in page
    assert '<a href="/account/sign-in/">' in page
    assert not User.objects.exists()
    assert log() == [("unknown name", "sign in", "Example University", "refused")]
    assert reason in Entry.objects.get().detail
    assert client.get("/account/").status_code == 302


def test_a_description_of_another_issuer_is_refused(client: Client, there: Identities) -> None:
    for document in (
        {"issuer": "https://elsewhere.example"},
        {"token_endpoint": "http://elsewhere.example/"},
        {"issuer": 1},
    ):
        there.described = document
        assert client.post("/account/sign-in/oidc/").status_code == 502


def test_an_issuer_may_end_with_a_slash(client: Client, there: Identities, settings: Settings) -> None:
    settings.OIDC_ISSUER = f"{there.url}/"
    assert client.post("/account/sign-in/oidc/").status_code == 502
    there.described, there.wrong = {"issuer": f"{there.url}/"}, {"iss": f"{there.url}/"}
    assert through(client).status_code == 302


def test_without_its_state_nobody_comes_back(
    client: Client, there: Identities, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = allowed(begun(client))
    stolen, forged = Client(), re.sub(r"state=\w+", "state=x", back)
    for browser, path in ((stolen, back), (client, forged), (client, "/account/sign-in/oidc/back/")):
        answer = browser.get(path)
        assert answer.status_code == 403
        assert "not started here, has expired" in answer.content.decode()
    other = back.replace("/oidc/", "/github/")
    assert client.get(other).status_code == 403
    assert client.get(back).status_code == 302
    assert client.get(back).status_code == 403  # it is valid once
    late = allowed(begun(client))
    monkeypatch.setattr("perfweb.accounts.providers.PATIENCE", 0)
    assert client.get(late).status_code == 403
    assert User.objects.count() == 1


def test_another_verifier_gets_no_token(client: Client, there: Identities) -> None:
    back = allowed(begun(client))
    (code,) = there.codes.values()
    code["code_challenge"] = "another"
    assert client.get(back).status_code == 403
    assert "invalid_grant" in Entry.objects.get().detail


@pytest.mark.parametrize("key", ["oidc", "github"])
def test_a_user_who_refuses_at_the_provider_is_shown_what_to_do(client: Client, there: Identities, key: str) -> None:
    there.denies = True
    answer = through(client, key)
    assert answer.status_code == 403
    assert "did not allow it to share your identity. Start again" in answer.content.decode()
    assert "access_denied" in Entry.objects.get().detail


def test_a_provider_that_sends_too_much_is_refused(client: Client, there: Identities) -> None:
    there.described["more"] = "x" * PROVIDER_BYTES
    answer = client.post("/account/sign-in/oidc/")
    assert answer.status_code == 502
    assert "does not answer now" in answer.content.decode()
    there.described.clear()
    there.person["more"] = "x" * PROVIDER_BYTES
    assert through(client).status_code == 502


def test_a_provider_that_is_away_is_named(client: Client, there: Identities) -> None:
    back = allowed(begun(client, "oidc")), allowed(begun(client, "github"))
    there.stop()
    for path in back:
        answer = client.get(path)
        assert answer.status_code == 502
        assert "does not answer now. Try again" in answer.content.decode()
    assert client.post("/account/sign-in/oidc/").status_code == 502


def test_nonsense_from_github_opens_nothing(client: Client, there: Identities) -> None:
    numbers: list[Any] = ["x", None, True, 1.5, "4711", [4711], 10**400]
    for profile in ({}, {"id": 4711}, *({"id": number, "login": "ann"} for number in numbers)):
        there.github = profile
        assert through(client, "github").status_code == 502
    assert not User.objects.exists()


@pytest.mark.parametrize("subject", ["", "\ud800", "a\0b", "a\nb", "\u202e", "x" * 256, True, 1.5, {"a": 1}, ["a"]])
def test_a_subject_that_is_no_printable_text_opens_nothing(there: Identities, subject: object) -> None:
    there.person = {"sub": "4711"}
    there.more = {"sub": subject, "preferred_username": "ann"}
    there.described["userinfo_endpoint"] = f"{there.url}/me"
    assert through(Client()).status_code == 502
    there.person = {"sub": subject, "preferred_username": "ann"}
    assert through(Client()).status_code == 502
    assert not User.objects.exists()


@pytest.mark.parametrize("claim", ["preferred_username", "name"])
@pytest.mark.parametrize("value", ["a\0b", "\u202e\n", "x" * 2000, True, 1e300, {"a": [{}]}, [[[1]]]])
def test_any_value_of_a_name_is_a_name(there: Identities, claim: str, value: object) -> None:
    there.person = {"sub": "4711", claim: value}
    assert through(Client()).headers["Location"] == "/account/"
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    "wanted", ["https://elsewhere.example/", "//elsewhere.example/", "javascript:alert(1)", "/" * 9999]
)
def test_after_it_nobody_is_sent_to_another_site(client: Client, there: Identities, wanted: str) -> None:
    assert through(client, next=wanted).headers["Location"] == "/account/"


def test_who_is_signed_in_links_an_account_and_unlinks_it(client: Client, there: Identities, person: Person) -> None:
    user = person(Role.MAINTAINER)
    client.force_login(user)
    assert through(client, action="link").headers["Location"] == "/account/"
    page = client.get("/account/").content.decode()
    assert f"ann at {there.url}" in page
    other = Client()
    through(other)
    assert "maintainer" in other.get("/account/").content.decode()
    assert User.objects.count() == 1
    key = Identity.objects.get().pk
    admin = Client()
    admin.force_login(User.objects.create_user("eve", role=Role.ADMIN))
    assert admin.post(f"/account/unlink/{key}/").status_code == 404
    assert client.post(f"/account/unlink/{key}/").status_code == 302
    through(Client())
    assert User.objects.filter(username="ann@oidc").exists()
    did = [(who, action) for who, action, _, _ in log()]
    assert did[:3] == [
        ("maintainer", "link account elsewhere"),
        ("maintainer", "sign in"),
        ("maintainer", "unlink account elsewhere"),
    ]


def test_an_account_elsewhere_opens_one_account_and_only_who_began_links_it(
    client: Client, there: Identities, person: Person
) -> None:
    through(Client())
    client.force_login(person(Role.MAINTAINER))
    answer = through(client, action="link")
    assert "opens another account here" in answer.content.decode()
    there.person["sub"] = "4712"
    back, another = (allowed(begun(client, action="link")) for _ in range(2))
    User.objects.filter(username="maintainer").update(is_active=False)
    answer = client.get(back)
    assert answer.status_code == 403
    assert "Sign in, and link the account again" in answer.content.decode()
    client.force_login(person(Role.ADMIN))
    assert "not started here" in client.get(another).content.decode()
    assert Identity.objects.count() == 1


def test_the_only_way_in_stays(client: Client, there: Identities) -> None:
    through(client)
    answer = client.post(f"/account/unlink/{Identity.objects.get().pk}/")
    assert answer.status_code == 409
    assert "Link another account first" in answer.content.decode()
    assert "/account/password/" not in client.get("/account/").content.decode()
    through(client, "github", "link")
    assert client.post(f"/account/unlink/{Identity.objects.first().pk}/").status_code == 302  # type: ignore[union-attr]


def test_a_deactivated_account_is_not_opened(client: Client, there: Identities) -> None:
    through(client)
    User.objects.update(is_active=False)
    answer = through(Client())
    assert answer.status_code == 403
    assert "ask an administrator" in answer.content.decode()


def test_it_begins_with_a_form_of_this_site(there: Identities) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post("/account/sign-in/oidc/").status_code == 403
    assert client.get("/account/sign-in/oidc/").status_code == 405


def test_it_cannot_be_tried_without_end(client: Client, there: Identities, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfweb.accounts.limits.OAUTH_STEPS", type(OAUTH_STEPS)("few", 1, 60))
    assert client.get("/account/sign-in/oidc/back/").status_code == 403
    assert client.get("/account/sign-in/oidc/back/").status_code == 429


def test_what_is_not_set_up_is_not_there(client: Client) -> None:
    assert "Sign in with" not in client.get("/account/sign-in/").content.decode()
    assert client.post("/account/sign-in/oidc/").status_code == 404
    assert client.get("/account/sign-in/github/back/").status_code == 404
    assert providers.problems() == []


def test_what_is_set_up_badly_is_reported(client: Client, there: Identities, settings: Settings) -> None:
    assert providers.problems() == []
    settings.OIDC_ISSUER, settings.GITHUB_SECRET_FILE = "http://elsewhere.example", "/nowhere"
    messages = [f"{error.msg} {error.hint}" for error in providers.problems()]
    assert len(messages) == 2
    assert "/nowhere" in messages[0]
    assert "PERFWEB_GITHUB_SECRET_FILE" in messages[0]
    assert "PERFWEB_OIDC_ISSUER" in messages[1]
    answer = client.post("/account/sign-in/github/")
    assert answer.status_code == 503
    assert "/nowhere" not in answer.content.decode()


def test_github_itself_is_queried_at_its_own_addresses(settings: Settings, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET, encoding="ascii")
    settings.GITHUB_CLIENT_ID, settings.GITHUB_SECRET_FILE = CLIENT, str(secret)
    address = urlsplit(begun(Client(), "github"))
    assert (address.scheme, address.netloc, address.path) == ("https", "github.com", "/login/oauth/authorize")
    assert parse_qs(address.query)["redirect_uri"] == ["http://testserver/account/sign-in/github/back/"]


def test_response_that_names_another_issuer_opens_nothing(client: Client, there: Identities) -> None:
    for wrong in ("https://evil.example", "", f"{there.url}/"):
        back = allowed(begun(client))
        answer = client.get(back + f"&{urlencode({'iss': wrong})}")
        assert (answer.status_code, User.objects.count()) == (403, 0)
        assert client.get(back).status_code == 403, "the sign-in has ended"
        there.denies = True
        assert client.get(allowed(begun(client)) + f"&{urlencode({'iss': wrong})}").status_code == 403
        there.denies = False
    for other, words in (("https://evil.example", "'https://evil.example'"), (there.url, "more than once")):
        twice = urlencode([("iss", there.url), ("iss", other)])
        assert client.get(allowed(begun(client)) + f"&{twice}").status_code == 403
        assert words in Entry.objects.latest("pk").detail
    assert "token" not in str(Entry.objects.values_list("detail"))
    assert client.get(allowed(begun(client)) + f"&{urlencode({'iss': there.url})}").status_code == 302


def test_provider_that_names_its_issuer_always_does(client: Client, there: Identities) -> None:
    there.described["authorization_response_iss_parameter_supported"] = True
    assert through(client).status_code == 403
    assert client.get(allowed(begun(client)) + f"&{urlencode({'iss': there.url})}").status_code == 302


SIGNERS: dict[str, tuple[Any, str | int, str]] = {
    "EdDSA": (OKPKey, "Ed25519", "sha512"), "RS256": (RSAKey, 2048, "sha256"), "PS512": (RSAKey, 2048, "sha512"),
    "ES256": (ECKey, "P-256", "sha256"), "ES384": (ECKey, "P-384", "sha384"), "ES512": (ECKey, "P-521", "sha512"),
}  # fmt: skip


@pytest.mark.parametrize("algorithm", SIGNERS)
def test_provider_may_sign_otherwise(client: Client, there: Identities, algorithm: str) -> None:
    kind, parameter, there.digest = SIGNERS[algorithm]
    key = kind.generate_key(parameter, {"kid": "one"}, auto_kid=False)
    there.key = key
    there.described["id_token_signing_alg_values_supported"] = ["Ed25519", algorithm]
    there.sign = lambda claims: signed(claims, key, algorithm)
    assert through(client).status_code == 302
    there.wrong = {"at_hash": there.half_hash("another token")}
    assert through(Client()).status_code == 502
    there.wrong = {}
    there.sign = lambda claims: signed(claims, kind.generate_key(parameter), algorithm)
    assert through(Client()).status_code == 502


@pytest.mark.parametrize("key", ["oidc", "github"])
def test_expired_code_needs_a_new_start(client: Client, there: Identities, key: str) -> None:
    back = allowed(begun(client, key))
    for code in there.codes.values():
        code["code_challenge"] = "expired"
    answer = client.get(back)
    assert answer.status_code == 403
    assert "expired, or was used before" in answer.content.decode()
    assert through(client, key).status_code == 302


def test_sessions_of_an_account_end_when_it_is_unlinked(client: Client, there: Identities, person: Person) -> None:
    user = person(Role.MAINTAINER)
    client.force_login(user)
    through(client, action="link")
    through(client, "github", action="link")
    by_oidc, by_github = Client(), Client()
    through(by_oidc)
    through(by_github, "github")
    assert client.post(f"/account/unlink/{Identity.objects.get(issuer=there.url).pk}/").status_code == 302
    assert [one.get("/account/").status_code for one in (client, by_oidc, by_github)] == [200, 302, 200]
    own = Identity.objects.get()
    assert by_github.post(f"/account/unlink/{own.pk}/").status_code == (302 if user.has_usable_password() else 409)
    assert by_github.get("/account/").status_code == (302 if user.has_usable_password() else 200)


def test_sign_in_during_an_unlink_opens_no_session(client: Client, there: Identities) -> None:
    through(client)

    def unlink(**_: object) -> None:
        sessions.unlink(Identity.objects.get())

    user_logged_in.connect(unlink)
    try:
        late = Client()
        answer = through(late)
    finally:
        user_logged_in.disconnect(unlink)
    assert (answer.status_code, "unlinked meanwhile" in answer.content.decode()) == (403, True)
    assert [one.get("/account/").status_code for one in (client, late)] == [302, 302]


def test_signing_out_ends_a_session_for_ever(client: Client, there: Identities) -> None:
    through(client)
    kept = client.cookies["sessionid"].value
    assert client.post("/account/sign-out/").status_code == 302
    client.cookies["sessionid"] = kept
    assert client.get("/account/").status_code == 302
