# SPDX-License-Identifier: BSD-2-Clause
"""Conditions and ranges of downloads, by RFC 9110."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client, RequestFactory
from hypothesis import given, settings
from hypothesis import strategies as st

from perfweb.rawdata.downloads import Body, send
from perfweb.runs.models import Run, RunState

CONTENT = bytes(range(256)) * 4
MODIFIED = datetime(2026, 11, 21, 9, 4, tzinfo=UTC)
BODY = Body(
    "run-1-samples.csv",
    "text/csv; charset=utf-8",
    lambda start: (CONTENT[place : place + 100] for place in range(start, len(CONTENT), 100)),
    lambda: len(CONTENT),
    "abc",
    MODIFIED,
)


def ask(body: Body = BODY, method: str = "GET", **headers: str) -> Any:
    given_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return send(RequestFactory().generic(method, "/", headers=given_headers), body)


def content(response: HttpResponseBase) -> bytes:
    return response.getvalue() if response.streaming else response.content  # type: ignore[attr-defined]


def test_the_whole_file() -> None:
    response = ask()
    assert (response.status_code, content(response)) == (200, CONTENT)
    assert response["ETag"] == '"abc"'
    assert response["Last-Modified"] == "Sat, 21 Nov 2026 09:04:00 GMT"
    assert response["Accept-Ranges"] == "bytes"
    assert response["Content-Length"] == "1024"
    assert response["Content-Disposition"] == 'attachment; filename="run-1-samples.csv"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response["Content-Security-Policy"]


def test_head_has_the_headers_only() -> None:
    response = ask(method="HEAD", Range="bytes=5-")
    assert (response.status_code, content(response)) == (200, b"")
    assert response["Content-Length"] == "1024"


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        ("bytes=0-", 0, 1023),
        ("bytes=0-0", 0, 0),
        ("bytes=1000-1023", 1000, 1023),
        ("bytes=1000-5000", 1000, 1023),
        ("bytes=-24", 1000, 1023),
        ("bytes=-5000", 0, 1023),
        ("Bytes = 99-101 ", 99, 101),
    ],
)
def test_a_part(wanted: str, first: int, last: int) -> None:
    response = ask(Range=wanted)
    assert (response.status_code, content(response)) == (206, CONTENT[first : last + 1])
    assert response["Content-Range"] == f"bytes {first}-{last}/1024"
    assert response["Content-Length"] == str(last + 1 - first)


@pytest.mark.parametrize("wanted", ["bytes=1024-", "bytes=1024-2000", "bytes=-0"])
def test_a_part_behind_the_end(wanted: str) -> None:
    response = ask(Range=wanted)
    assert (response.status_code, response["Content-Range"]) == (416, "bytes */1024")


@pytest.mark.parametrize(
    "wanted", ["bytes=5-3", "bytes=-", "bytes=a-", "lines=1-2", "bytes=0-1,5-6", "bytes=1", "", f"bytes={'9' * 30}-"]
)
def test_what_is_no_single_range_is_ignored(wanted: str) -> None:
    response = ask(Range=wanted)
    assert (response.status_code, content(response)) == (200, CONTENT)


@pytest.mark.parametrize(
    ("validator", "status"),
    [('"abc"', 206), ('"old"', 200), ('W/"abc"', 200), ("Sat, 21 Nov 2026 09:04:00 GMT", 200)],
)
def test_if_range(validator: str, status: int) -> None:
    response = ask(Range="bytes=10-", If_Range=validator)
    assert response.status_code == status
    assert content(response) == (CONTENT[10:] if status == 206 else CONTENT)


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("If_None_Match", '"abc"', 304),
        ("If_None_Match", '"x", W/"abc"', 304),
        ("If_None_Match", "*", 304),
        ("If_None_Match", '"x"', 200),
        ("If_Match", '"abc"', 200),
        ("If_Match", '"x"', 412),
        ("If_Modified_Since", "Sat, 21 Nov 2026 09:04:00 GMT", 304),
        ("If_Modified_Since", "Sat, 21 Nov 2026 09:03:59 GMT", 200),
        ("If_Unmodified_Since", "Sat, 21 Nov 2026 09:03:59 GMT", 412),
    ],
)
def test_conditions(name: str, value: str, status: int) -> None:
    response = ask(BODY, "GET", **{name: value})
    assert response.status_code == status
    assert content(response) == (CONTENT if status == 200 else b"")
    if status == 304:
        assert (response["ETag"], response["Cache-Control"]) == ('"abc"', "no-cache")


def test_a_condition_comes_before_the_range() -> None:
    assert ask(If_None_Match='"abc"', Range="bytes=9999-").status_code == 304


def test_what_may_change_has_neither_conditions_nor_ranges() -> None:
    changing = Body("x.csv", "text/csv", BODY.pieces, BODY.length, announced=False)
    response = ask(changing, If_None_Match="*", Range="bytes=1-")
    assert (response.status_code, content(response)) == (200, CONTENT)
    assert (response["Accept-Ranges"], response["Cache-Control"]) == ("none", "no-store")
    assert "Content-Length" not in response


def test_a_name_of_a_file_cannot_end_its_header() -> None:
    response = ask(Body('a"; x="\r\nb.txt', "text/plain", BODY.pieces, BODY.length))
    assert response["Content-Disposition"] == 'attachment; filename="a___x____b.txt"'


@settings(max_examples=50)
@given(st.text(max_size=40))
def test_no_range_header_breaks_anything(text: str) -> None:
    assert ask(Range="bytes=" + text.encode("ascii", "ignore").decode()).status_code in {200, 206, 416}


Fetch = Callable[..., Any]


@pytest.fixture
def fetch(client: Client) -> Fetch:
    def get(address: str, **headers: str) -> Any:
        return client.get(address, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return get


def test_head_never_has_a_wrong_length(client: Client, run: Run) -> None:
    table, archive = (client.head(f"/runs/{run.pk}/{name}") for name in ("samples.csv", "raw.tar"))
    assert "Content-Length" not in table
    assert int(archive["Content-Length"]) == len(content(client.get(f"/runs/{run.pk}/raw.tar")))


ADDRESSES = (
    "samples.csv", "samples.json", "samples.parquet", "verdicts.csv", "verdicts.json", "verdicts.parquet", "run.json",
    "raw.tar", "plan.yaml", "ministat/direct/tcp.rr/host-host/ipv4.txt", "compare/deferred..direct/samples.parquet",
    "compare/deferred..direct/verdicts.csv?margin=1", "compare/deferred..direct/raw.tar",
)  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_download_that_broke_can_be_continued_anywhere(fetch: Fetch, run: Run, address: str) -> None:
    address = f"/runs/{run.pk}/{address}"
    whole = fetch(address)
    everything, etag = content(whole), whole["ETag"]
    assert fetch(address, If_None_Match=etag).status_code == 304
    assert fetch(address, If_Modified_Since=whole["Last-Modified"]).status_code == 304
    rng = random.Random(1)
    for place in [0, len(everything) - 1, *(rng.randrange(len(everything)) for _ in range(3))]:
        rest = fetch(address, Range=f"bytes={place}-", If_Range=etag)
        assert (rest.status_code, content(rest)) == (206, everything[place:])
        assert rest["Content-Range"] == f"bytes {place}-{len(everything) - 1}/{len(everything)}"
    assert fetch(address, Range=f"bytes={len(everything)}-").status_code == 416


def test_another_version_is_sent_whole(fetch: Fetch, run: Run) -> None:
    address = f"/runs/{run.pk}/raw.tar"
    etag = fetch(address)["ETag"]
    run.boots.order_by("position")[:1].get().measurements.update(state="void", reason="the link went down")
    again = fetch(address, Range="bytes=1000-", If_Range=etag)
    assert again.status_code == 200
    assert again["ETag"] != etag


def test_a_run_that_works_has_tables_but_no_archive(fetch: Fetch, run: Run) -> None:
    Run.objects.update(state=RunState.RUNNING)
    table = fetch(f"/runs/{run.pk}/samples.csv", Range="bytes=0-9")
    assert (table.status_code, table["Cache-Control"]) == (200, "no-store")
    archive = fetch(f"/runs/{run.pk}/raw.tar")
    assert archive.status_code == 409
    assert "samples.csv" in archive.content.decode()
