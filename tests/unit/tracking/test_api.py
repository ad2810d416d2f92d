# SPDX-License-Identifier: BSD-2-Clause
"""Tracked branches, changes between two commits, and alerts, for programs."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from perfweb.accounts.models import Role, Scope, Token, User
from perfweb.accounts.tokens import issue
from perfweb.tracking.models import Alert, AlertState, AlertStep, TrackedBranch
from tests.laboratory import STREAM, Laboratory, tracked
from tests.unit.api.contract import Api

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(client: Client) -> Api:
    return Api(client)


@pytest.fixture
def branch(laboratory: Laboratory) -> TrackedBranch:
    shas = [laboratory.commit(number) for number in range(4)]
    made = tracked(shas[0])
    laboratory.round()
    return made


def alert(branch: TrackedBranch, state: AlertState) -> Alert:
    made = Alert.objects.create(
        branch=branch, state=state, since=branch.commits.get(position=2), until=branch.commits.get(position=3)
    )
    made.movements.create(variant="direct", test=STREAM, better=False, suspected=-7.0)
    AlertStep.objects.create(alert=made, to_state=state, who="tracking", text="seen")
    return made


def test_branches_are_listed(api: Api, branch: TrackedBranch) -> None:
    (row,) = api.read("tracked-branches")["items"]
    assert (row["name"], row["testbed"], row["rhythm"], row["active"]) == ("head", "demo", "push", True)
    assert api.read("tracked-branches/head") == row
    assert api.client.get(row["page"]).status_code == 200
    assert "No branch “nobody” is tracked; there are: head" in api.read("tracked-branches/nobody", status=404)["detail"]


def test_alerts_come_in_parts_and_by_state(api: Api, branch: TrackedBranch) -> None:
    first, second = alert(branch, AlertState.CONFIRMED), alert(branch, AlertState.REFUTED)
    assert [row["number"] for row in api.walk("alerts", limit=1)] == [second.number, first.number]
    (row,) = api.read("alerts", state="confirmed", branch="head")["items"]
    assert row["since"]["position"] == 2
    assert row["commit"] is None
    assert row["movements"][0] | {"test": STREAM, "suspected": -7.0, "percent": None} == row["movements"][0]
    found = api.read(row["url"])
    assert [step["text"] for step in found["steps"]] == ["seen"]
    assert found["checks"] == []
    assert "no alert 999" in api.read("alerts/999", status=404)["detail"]
    assert api.read("alerts", branch="nobody")["items"] == []


def test_a_period_has_what_moved(api: Api, branch: TrackedBranch) -> None:
    alert(branch, AlertState.CONFIRMED)
    found = api.read("tracked-branches/head/period", first=2)
    assert (found["commits"], len(found["alerts"]), found["moved"]) == (2, 1, [])
    assert api.read("tracked-branches/head/period", first=3)["alerts"] == []
    for end in ("first", "last"):
        (wrong,) = api.read(f"tracked-branches/head/period?{end}=77", status=422)["errors"]
        assert wrong["parameter"] == end
        assert "no commit" in wrong["reason"]
    api.read("tracked-branches/head/period", status=422, first="x y")


@pytest.mark.parametrize("amount", [1, 4])
def test_queries_do_not_depend_on_how_many_there_are(
    api: Api, branch: TrackedBranch, django_assert_num_queries: DjangoAssertNumQueries, amount: int
) -> None:
    for _ in range(amount):
        alert(branch, AlertState.CONFIRMED)
    for address, queries in {"alerts": 2, "tracked-branches": 1}.items():
        with django_assert_num_queries(queries):
            api.read(address)


def update(number: int, role: Role = Role.SUBMITTER, **fields: object) -> Any:
    user, _ = User.objects.get_or_create(username=role.label, defaults={"role": role})
    _, secret = issue(user, f"laptop {Token.objects.count()}", Scope.SUBMIT, 1)
    return Client().post(
        f"/api/v1/alerts/{number}/say",
        fields,
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )


def test_what_became_of_an_alert_is_reported(api: Api, branch: TrackedBranch) -> None:
    known = alert(branch, AlertState.CONFIRMED)
    answer = update(known.number, state="acknowledged", owner="submitter", due="2026-12-01", text="It was meant.")
    assert answer.status_code == 200
    updated = answer.json()
    assert (updated["state"], updated["owner"], updated["due"]) == ("acknowledged", "submitter", "2026-12-01")
    assert updated["steps"][-1]["text"] == "It was meant."
    assert updated["steps"][-1]["who"] == "submitter"
    assert update(known.number, due="2026-12-24").json()["owner"] == "submitter"
    assert update(known.number, text="only a word").json()["due"] == "2026-12-24"
    assert update(known.number, owner="").json()["owner"] is None
    assert api.read(f"alerts/{known.number}")["state"] == "acknowledged"


def test_an_invalid_update_of_an_alert_reports_the_reason(branch: TrackedBranch) -> None:
    known, new = alert(branch, AlertState.CONFIRMED), alert(branch, AlertState.NEW)
    assert update(new.number, state="fixed").status_code == 409
    assert "Nothing to save" in update(known.number).json()["detail"]
    assert "no account “nobody”" in update(known.number, owner="nobody").json()["detail"]
    assert update(known.number, state="confirmed").status_code == 422
    assert update(known.number, words="what?").status_code == 422
    assert update(999, text="hello").status_code == 404
    assert update(known.number, role=Role.READER, text="hello").status_code == 403
    assert known.steps.count() == 1
