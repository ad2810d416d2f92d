# SPDX-License-Identifier: BSD-2-Clause
"""Submissions over the API: with a token, within its scope, and with errors that show what to do."""

import json
from typing import Any

import pytest
from django.test import Client

from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Role, Scope
from perfweb.runs.models import Run
from perfweb.submissions.models import Submission
from perfweb.submissions.plans import MATRICES
from tests.factories import create_measurements
from tests.unit.accounts.conftest import bearer
from tests.unit.submissions.conftest import author, diff, nothing_counted, person, repository, topic

__all__ = ["author", "diff", "nothing_counted", "repository", "topic"]
pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/submissions"


def post(actor: Actor, address: str, content: dict[str, Any], scope: Scope = Scope.SUBMIT) -> Any:
    assert actor.user is not None
    return Client().post(
        address, json.dumps(content), content_type="application/json", headers=bearer(actor.user, scope)
    )


def test_patch_is_submitted_read_and_cancelled(author: Actor, diff: bytes) -> None:
    wanted = {"patch": diff.decode(), "testbed": "demo", "tunables": {"net.isr.dispatch": "direct"}}
    answer = post(author, ADDRESS, wanted)
    assert answer.status_code == 201
    made = answer.json()
    assert (made["state"], made["author"]) == ("waiting", "author")
    assert made["stages"][0]["files"] == [{"path": "stack/net/if.c", "added": 1, "removed": 1}]
    assert "net.isr.dispatch: direct" in made["plan"]
    assert Client().get(made["url"]).json()["history"] == made["history"]
    assert [row["number"] for row in Client().get(f"{ADDRESS}?state=waiting").json()["items"]] == [made["number"]]
    assert Client().get(made["patch"]).getvalue() == diff
    again = post(author, ADDRESS, wanted)
    assert (again.status_code, f"POST {made['url']}/rerun." in again.json()["detail"]) == (409, True)
    assert post(author, f"{made['url']}/cancel", {}).json()["state"] == "cancelled"
    assert post(author, f"{made['url']}/cancel", {}).status_code == 409


def test_branch_is_submitted(author: Actor, topic: str) -> None:
    wanted = {"ref": topic, "repository": "theirs", "testbed": "demo", "each": True}
    made = post(author, ADDRESS, wanted).json()
    assert [stage["subject"] for stage in made["stages"]] == ["net: name five;", "net: name thirty;"]
    for wrong in ({"ref": ""}, {"patch": "x"}, {"ref": "nonsense"}, {"repository": "nobody"}):
        assert post(author, ADDRESS, {**wanted, **wrong}).status_code == 422


def test_maintainer_decides(author: Actor, diff: bytes) -> None:
    wanted = {"patch": diff.decode(), "testbed": "demo"}
    maintainer = person("maintainer", Role.MAINTAINER)
    made = post(author, ADDRESS, wanted).json()
    assert post(author, f"{made['url']}/approve", {}).status_code == 403
    for reason in ({}, {"reason": " "}, {"reason": "control \1"}):
        assert post(maintainer, f"{made['url']}/refuse", reason, Scope.MAINTAIN).status_code == 422
    refused = post(maintainer, f"{made['url']}/refuse", {"reason": "reads keys"}, Scope.MAINTAIN).json()
    assert (refused["state"], refused["reason"]) == ("refused", "reads keys")
    assert post(maintainer, f"{made['url']}/approve", {}, Scope.MAINTAIN).status_code == 409
    again = post(author, ADDRESS, wanted).json()
    approved = post(maintainer, f"{again['url']}/approve", {}, Scope.MAINTAIN).json()
    assert (approved["state"], [run["state"] for run in approved["runs"]]) == ("approved", ["queued"])


def test_what_is_open_is_measured_with_more_boots(author: Actor, diff: bytes) -> None:
    maintainer = person("maintainer", Role.MAINTAINER)
    made = post(maintainer, ADDRESS, {"patch": diff.decode(), "testbed": "demo"}, Scope.MAINTAIN).json()
    assert (made["state"], made["deciding_boots"]) == ("approved", None)
    again = f"{made['url']}/rerun"
    assert post(author, again, {}).status_code == 409
    create_measurements(Run.objects.get(), MATRICES["tcp-quick"].tests, noise=0.04, seed=2)
    boots = Client().get(made["url"]).json()["deciding_boots"]
    assert post(author, again, {"boots": 51}).status_code == 422
    assert len(post(author, again, {"boots": boots}).json()["runs"]) == 2
    assert f"boots: {boots}\n" in Run.objects.latest("number").plan.text


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"patch": "hello", "testbed": "demo"}, "This has no diff"),
        ({"patch": "hello"}, "testbed: Field required"),
        ({"patch": "hello", "testbed": "demo", "colour": "red"}, "colour: Extra inputs are not permitted"),
    ],
)
def test_refusals(author: Actor, wanted: dict[str, Any], sentence: str) -> None:
    answer = post(author, ADDRESS, wanted)
    assert answer.status_code == 422
    assert sentence in answer.json()["detail"]


def test_token_that_may_only_read(author: Actor, diff: bytes) -> None:
    wanted = {"patch": diff.decode(), "testbed": "demo"}
    assert post(author, ADDRESS, wanted, Scope.READ).status_code == 403
    assert Client().post(ADDRESS, json.dumps(wanted), content_type="application/json").status_code == 401
    assert not Submission.objects.exists()
