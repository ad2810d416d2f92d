# SPDX-License-Identifier: BSD-2-Clause
"""Rules for all responses: errors are problems, and an unchanged response is not sent again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from perfweb.api.problems import CONTENT_TYPE, Problem
from perfweb.api.v1 import document
from perfweb.runs.models import Run, RunTransition
from tests.factories import DEMO_TESTS, create_queued_run, create_run
from tests.unit.api.contract import Api

pytestmark = pytest.mark.django_db
TEST = DEMO_TESTS[0]
ADDRESSES = ["runs", "runs/{run}", "runs/{run}/samples", "runs/{run}/comparisons", "tests", "testbeds", "openapi.json"]


def problem(response: Any, status: int) -> Problem:
    assert response.status_code == status
    assert response.headers["Content-Type"] == CONTENT_TYPE
    found = Problem.model_validate_json(response.content)
    assert found.status == status
    return found


@pytest.mark.parametrize("address", ["/api/v1/nothing", "/api/v2/runs", "/api/v1/runs/x/y/z", "/api/nothing"])
def test_what_is_not_there_is_a_problem(client: Client, address: str) -> None:
    assert address in problem(client.get(address), 404).detail


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "trace", "options"])
@pytest.mark.parametrize("address", ["/api/v1/runs", "/api/v1/openapi.json", "/api/v1/"])
def test_nothing_can_be_changed(client: Client, method: str, address: str) -> None:
    response = getattr(client, method)(address)
    found = problem(response, 405)
    assert method.upper() in found.detail
    assert {name.strip() for name in response.headers["Allow"].split(",")} == {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("query", "parameter", "reason"),
    [
        ("limit=201", "limit", "less than or equal to 200"),
        ("limit=0", "limit", "greater than or equal to 1"),
        ("limit=many", "limit", "integer"),
        ("state=finished", "state", "'queued'"),
        ("sate=done", "sate", "no such parameter; there are: commit, cursor, limit"),
        ("since=yesterday", "since", "write 2026-11-21"),
        ("since=2026-02-30", "since", "write 2026-11-21"),
        ("cursor=9223372036854775808", "cursor", "less than or equal"),
        ("test=a%1Fb", "test", "pattern"),
        ("test=a%0Ab", "test", "pattern"),
    ],
)
def test_bad_input_is_named_with_what_would_be_right(api: Api, query: str, parameter: str, reason: str) -> None:
    response = api.client.get(f"/api/v1/runs?{query}")
    found = problem(response, 422)
    assert [error.parameter for error in found.errors] == [parameter]
    assert reason in found.errors[0].reason
    assert parameter in found.detail


def test_a_repeated_parameter_is_refused_unless_it_takes_a_list(client: Client, run: Run) -> None:
    named, wrong = set(), []
    for path, operations in document()["paths"].items():
        address = path.format(number=run.pk, name="demo", sha256=run.plan.sha256)
        for parameter in operations.get("get", {}).get("parameters", ()):
            if parameter["in"] != "query":
                continue
            name, value = parameter["name"], acceptable(parameter["schema"])
            once = client.get(f"{address}?{name}={value}")
            twice = client.get(f"{address}?{name}={value}&{name}={value}")
            if f"{name}: the address has it 2 times; write it once" in twice.content.decode():
                named.add(name)
            elif twice.status_code != (once.status_code if parameter["schema"].get("type") == "array" else 422):
                wrong.append(f"{path} {name}={value}: {twice.status_code}")
    assert not wrong
    assert named > {"limit", "cursor", "since", "plan", "testbed"}
    assert not named & {"state", "kind"}


def acceptable(schema: dict[str, Any]) -> str:
    """A value of a query parameter that its schema allows, if it is simple."""
    schema = next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), schema)
    if "$ref" in schema.get("items", {}):
        return str(document()["components"]["schemas"][schema["items"]["$ref"].rpartition("/")[2]]["enum"][0])
    known = {"integer": "1", "boolean": "true"}
    return known.get(
        schema.get("type", ""), "2026-11-21" if "pattern" in schema and "\\d{4}-" in schema["pattern"] else "a"
    )


@pytest.mark.parametrize("number", ["0", "-1", "x", "9223372036854775808"])
def test_a_number_that_no_run_can_have(api: Api, number: str) -> None:
    assert api.read(f"runs/{number}", status=422)["errors"][0]["parameter"] == "number"


def test_a_failure_of_the_server_is_a_problem_without_internal_details(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("perfweb.api.catalogue.health", broken)
    response = Client(raise_request_exception=False).get("/api/v1/testbeds")
    assert "secret" not in problem(response, 500).detail


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_answer_that_has_not_changed_is_not_sent_again(client: Client, run: Run, address: str) -> None:
    path = f"/api/v1/{address.format(run=run.pk)}"
    first = client.get(path)
    again = client.get(path, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert "Accept-Encoding" in again.headers["Vary"]
    assert "Content-Length" not in again.headers
    assert client.get(path, headers={"If-None-Match": '"another"'}).content == first.content
    problem(client.get(path, headers={"If-Match": '"another"'}), 412)


@pytest.mark.parametrize("address", ["", "/boots", "/measurements", "/samples", "/artefacts", "/comparisons"])
def test_what_is_known_of_a_run_that_is_over_is_not_read_again(
    client: Client, run: Run, django_assert_num_queries: DjangoAssertNumQueries, address: str
) -> None:
    path = f"/api/v1/runs/{run.pk}{address}"
    tag = client.get(path).headers["ETag"]
    with django_assert_num_queries(1):
        assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
    assert client.get(path, headers={"If-None-Match": f"W/{tag}", "Accept-Encoding": "gzip"}).status_code == 304
    assert client.get(f"{path}?limit=1").headers.get("ETag") != tag
    RunTransition.objects.create(run=run, from_state="done", to_state="done", reason="again")
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 200


def tag_that_lasts(client: Client, path: str) -> str:
    """The tag of a response about many runs, by which one query shows that it has not changed."""
    for _ in range(20):
        tag = client.get(path).headers["ETag"]
        with CaptureQueriesContext(connection) as captured:
            status = client.get(path, headers={"If-None-Match": tag}).status_code
        if status == 304:
            assert len(captured) == 1, path
            return tag
        # Other processes may write to the same server, such as autovacuum.
    raise AssertionError(f"{path} has no lasting tag")


@pytest.mark.django_db(transaction=True)
def test_pages_of_many_runs_are_not_computed_again_until_the_database_changes(client: Client) -> None:
    run = create_run()
    sides = f"base={run.pk}/deferred&with={run.pk}/direct"
    calls = ["runs?verdicts=true", f"series?test={TEST}", f"summaries?test={TEST}", "plans", f"comparisons?{sides}"]
    pages = ["/runs/", "/tests/", f"/tests/{TEST}/", "/topics/tcp/", f"/compare/?{sides}"]
    tags = {path: tag_that_lasts(client, path) for path in [*(f"/api/v1/{call}" for call in calls), *pages]}
    assert len(set(tags.values())) == len(tags)
    create_queued_run()
    for path, tag in tags.items():
        again = client.get(path, headers={"If-None-Match": tag})
        assert again.status_code == 200, path
        assert again.headers["ETag"] != tag


def test_own_writes_of_a_transaction_are_not_treated_as_the_state_before_it(client: Client) -> None:
    create_queued_run()
    first = client.get("/runs/")
    create_queued_run()
    again = client.get("/runs/", headers={"If-None-Match": first.headers.get("ETag", "")})
    assert again.content != first.content


def test_an_answer_that_has_changed_has_another_tag(client: Client) -> None:
    first = client.get("/api/v1/runs").headers["ETag"]
    create_queued_run()
    assert client.get("/api/v1/runs", headers={"If-None-Match": first}).status_code == 200


@pytest.mark.parametrize("address", ADDRESSES)
def test_head_has_the_headers_of_get(client: Client, run: Run, address: str) -> None:
    path = f"/api/v1/{address.format(run=run.pk)}"
    got, head = client.get(path), client.head(path)
    assert head.content == b""
    for name in ("ETag", "Content-Type", "Content-Length"):
        assert head.headers[name] == got.headers[name]


def test_the_policy_of_the_site_holds(client: Client) -> None:
    for address in ("/api/v1/", "/api/v1/runs", "/api/v1/openapi.json", "/api/v1/nothing"):
        assert "default-src 'none'" in client.get(address).headers["Content-Security-Policy"]


def test_people_find_every_address_and_object_described(client: Client) -> None:
    document = json.loads(client.get("/api/v1/openapi.json").content)
    assert client.get("/api/").headers["Location"] == "/api/v1/"
    page = client.get("/api/v1/").content.decode()
    assert document["openapi"].startswith("3.")
    for address in document["paths"]:
        assert address in page
    for name, schema in document["components"]["schemas"].items():
        assert f'id="{name}"' in page or "enum" in schema
    for sent in ("NewSubmission", "Refusal"):
        assert f'The request is <a href="#{sent}">' in page
        assert f'href="#{name}"' not in page or f'id="{name}"' in page


def test_pages_are_no_problems(client: Client) -> None:
    response = client.get("/runs/4711/")
    assert (response.status_code, response.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "ETag" not in client.get("/testbeds/").headers
