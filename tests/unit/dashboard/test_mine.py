# SPDX-License-Identifier: BSD-2-Clause
"""A user's own page."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from perfweb.accounts.models import Role, User
from perfweb.runs.models import Run
from perfweb.tracking.models import AlertState
from tests.factories import DEMO_TESTS, create_alert, create_history, create_queued_run, create_submission
from tests.unit.pages import page

pytestmark = pytest.mark.django_db
MINE = "/account/mine/"


def test_a_user_finds_patches_runs_and_owned_alerts(client: Client) -> None:
    submission = create_submission()
    author = submission.author
    client.force_login(author)
    assert "None yet" in page(client, MINE)
    own, other, measured = (create_queued_run() for _ in range(3))
    Run.objects.filter(pk__in=[own.pk, measured.pk]).update(requested_by=author.username)
    submission.runs.add(measured)
    alerts = [create_alert(create_history(4, DEMO_TESTS[:1])) for _ in range(3)]
    for alert, owner, state in zip(alerts, (author, None, author), ("confirmed", "confirmed", "fixed"), strict=True):
        alert.owner, alert.state = owner, AlertState(state)
        alert.save()
    text = page(client, MINE)
    assert f"/submissions/{submission.pk}/" in text
    assert set(re.findall(r"/runs/(\d+)/\"", text)) == {str(own.pk)}
    assert set(re.findall(r"/alerts/(\d+)/", text)) == {str(alerts[0].number)}
    assert other.pk not in {own.pk, measured.pk}
    assert MINE in page(client, "/account/")


def test_another_user_finds_nothing_of_it(client: Client) -> None:
    create_submission()
    client.force_login(User.objects.create_user("bea", role=Role.READER))
    assert "/submissions/1" not in page(client, MINE)
    assert Client().get(MINE).headers["Location"].startswith("/account/sign-in/")
