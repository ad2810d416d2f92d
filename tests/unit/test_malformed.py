# SPDX-License-Identifier: BSD-2-Clause
"""Each kind of malformed request is refused with its status and a reason; tests/unit/crawl tries every address."""

from __future__ import annotations

import pytest
from django.db import DataError, connection
from django.test import Client

from perfweb.accounts.models import Role, User
from perfweb.api.problems import CONTENT_TYPE
from perfweb.serving.malformed import WellFormed
from tests.unit.accounts.conftest import bearer

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/tests/a%00b/", "The path of the address: It has a NUL character"),
        ("/account/password/%00/x/", "The path of the address: It has a NUL character"),
        ("/tests/x/graph.svg?series=%00", "The query of the address: It has a NUL character"),
        ("/search/?%00=x", "The query of the address: It has a NUL character"),
        ("/search/?q=%ff", "The query of the address is not UTF-8"),
        ("/search/?q=%ed%a0%80", "The query of the address is not UTF-8"),
        ("/runs/?before=x", "before: “x” is no number"),
        ("/runs/?before=%d9%a3", "before: “٣” is no number"),
        ("/topics/tcp/?before=" + "9" * 19, "is no number: write digits, 18 at most"),
        ("/submissions/?before=-1", "before: “-1” is no number"),
        ("/alerts/?before=1e3", "before: “1e3” is no number"),
    ],
)
def test_a_malformed_address_is_refused_with_a_reason(client: Client, path: str, words: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 400
    assert words in answer.content.decode()


@pytest.mark.parametrize("charset", ["idna", "base64", "utf-16", "no-such", "utf-7", "rot13", ""])
def test_another_charset_is_refused(client: Client, charset: str) -> None:
    answer = client.get("/runs/", headers={"Content-Type": f"text/plain; charset={charset}"})
    assert answer.status_code == 415
    assert "send UTF-8" in answer.content.decode()


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", "utf8", "us-ascii"])
def test_utf_8_goes_by_several_names(client: Client, charset: str) -> None:
    assert client.get("/runs/", headers={"Content-Type": f"text/plain; charset={charset}"}).status_code == 200


def test_nul_in_a_field_of_a_form_is_refused(client: Client) -> None:
    answer = client.post("/account/sign-in/", {"username": "a\0b", "password": "x"})
    assert answer.status_code == 400
    assert "The field “username”" in answer.content.decode()


@pytest.mark.parametrize("path", ["/api/v1/runs?cursor=%00", "/api/v1/runs/%00", "/api/nowhere%ff?q=%ff"])
def test_the_api_refuses_in_json(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 400
    assert answer.headers["Content-Type"] == CONTENT_TYPE
    assert answer.json()["detail"].startswith(("The path", "The query"))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"why": "a", "why": "b"}', "the name “why” is there twice"),
        (b'{"why": "a\\u0000b"}', "NUL character"),
        (b'{"\\u0000": "x"}', "NUL character"),
        (b'{"why": [["\\u0000"]]}', "NUL character"),
        (b'{"why": NaN}', "NaN is not a JSON number"),
        (b'{"why": -Infinity}', "-Infinity is not a JSON number"),
        (b"[" * 50_000, "nested more than 32 deep"),
        (b"[]", "it has to be an object"),
        (b'{"why": ' + b"9" * 5000 + b"}", "Cannot parse request body"),
        (b'{"why": "\xff"}', "Cannot parse request body"),
        (b"why=x", "Cannot parse request body"),
    ],
)
def test_a_body_that_is_not_json_of_one_meaning_is_refused(client: Client, body: bytes, words: str) -> None:
    headers = bearer(User.objects.create_user("keeper", role=Role.MAINTAINER))
    answer = client.post("/api/v1/testbeds/demo/maintain", body, "application/json", headers=headers)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]


def test_every_refusal_has_a_text(client: Client) -> None:
    answer = client.post("/runs/")
    assert answer.status_code == 405
    assert "This address takes only GET, HEAD" in answer.content.decode()
    assert int(answer.headers["Content-Length"]) == len(answer.content)


def test_a_missing_page_with_a_malformed_body_is_still_missing(client: Client) -> None:
    body = (
        b'--x\r\nContent-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64\r\n\r\n\xff\r\n--x--\r\n'
    )
    assert client.post("/nowhere/", body, "multipart/form-data; boundary=x").status_code == 404


def test_what_the_database_refuses_as_data_is_the_fault_of_the_request(client: Client) -> None:
    request = client.get("/runs/").wsgi_request
    with pytest.raises(DataError) as caught, connection.cursor() as cursor:
        cursor.execute("SELECT 10 ^ 400::numeric::float8")
    answer = WellFormed(lambda _: None).process_exception(request, caught.value)  # type: ignore[arg-type, return-value]
    assert answer is not None
    assert answer.status_code == 400
    assert b"outside the range" in answer.content


def test_other_failures_are_failures(client: Client) -> None:
    request = client.get("/runs/").wsgi_request
    assert WellFormed(lambda _: None).process_exception(request, ValueError()) is None  # type: ignore[arg-type, return-value]
