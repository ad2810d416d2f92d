# SPDX-License-Identifier: BSD-2-Clause
"""Each unattended loop: an exception of one item does not affect the others and is shown."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from perfweb.faults.models import Fault
from perfweb.forges import following
from perfweb.forges import services as forges
from perfweb.forges.models import CommentRequest, Delivery
from perfweb.mail import series as mail
from perfweb.mail.models import Series
from perfweb.outbox import services as outbox
from perfweb.outbox.models import Letter
from perfweb.tracking import history, scheduler, weekly
from perfweb.tracking.alerts import followup
from perfweb.tracking.models import Alert, AlertState
from tests.laboratory import Laboratory, tracked
from tests.unit.forges.conftest import Bot, commented

pytestmark = pytest.mark.django_db


def failing_once(true: Callable[..., Any], concerns: Callable[..., bool]) -> Callable[..., Any]:
    """Return the function with an exception for items that match `concerns`."""

    def function(*arguments: Any, **named: Any) -> Any:
        if concerns(*arguments):
            raise RecursionError("planted")
        return true(*arguments, **named)

    return function


def only_fault(task: str) -> Fault:
    fault = Fault.objects.get()
    assert fault.task == task
    assert "RecursionError('planted')" in fault.error
    assert fault.advice
    return fault


def send(letter: Letter) -> str:
    return str(letter.content["reference"])


def test_outbox(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.OUTBOX_SENDERS = {"test": f"{__name__}.send"}
    for number in range(3):
        outbox.post("test:a", f"key {number}", {"reference": f"number {number}"})
    first = Letter.objects.get(key="key 0").pk
    monkeypatch.setattr(outbox, "_take", failing_once(outbox._take, lambda number, _: number == first))
    assert outbox.deliver() == 2
    assert only_fault("deliver").item == f"message {first}"


@pytest.mark.parametrize("reference", ["r" * 501, "\0", "\ud800", "9" * 5000])
def test_outbox_when_the_other_side_answers_what_cannot_be_stored(
    settings: Settings, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OUTBOX_SENDERS = {"test": f"{__name__}.send"}
    for number in range(2):
        outbox.post("test:a", f"key {number}", {"number": number})
    monkeypatch.setattr(f"{__name__}.send", lambda letter: "1" if letter.content["number"] else reference)
    assert outbox.deliver() == 2
    assert Letter.objects.filter(due=None).count() == 2


def test_series_of_mails(monkeypatch: pytest.MonkeyPatch) -> None:
    for sender in ("ada", "eve", "kim"):
        Series.objects.create(sender=f"{sender}@example.org", state="submitted")
    seen: list[str] = []
    monkeypatch.setattr(
        mail, "_submitted", failing_once(lambda one: seen.append(one.sender), lambda one: one.sender[:3] == "ada")
    )
    mail.attend()
    assert sorted(seen) == ["eve@example.org", "kim@example.org"]
    only_fault("attend to mail")


def test_deliveries_of_forges(github: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2, 3):
        assert github.deliver(commented("github", "/perf help", number=number)) == 202
    first = Delivery.objects.order_by("pk")[0].pk
    monkeypatch.setattr(forges, "_act", failing_once(forges._act, lambda _, event: event.comment == 1))
    forges.act_on_all()
    assert sorted(CommentRequest.objects.values_list("comment", flat=True)) == [2, 3]
    assert only_fault("act on a webhook").item == f"delivery {first}"


def test_answers_to_forges(github: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        assert github.comment("/perf help")
    first = CommentRequest.objects.order_by("pk")[0]
    monkeypatch.setattr(
        following, "post_report", failing_once(following.post_report, lambda requested: requested == first)
    )
    following.follow()
    assert Letter.objects.count() == 2
    only_fault("report to a forge")


def test_tracked_branches(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    sha = laboratory.commit(1)
    branches = [tracked(sha, name=name) for name in ("bad", "good", "last")]
    monkeypatch.setattr(history, "refresh", failing_once(history.refresh, lambda branch, _: branch.name == "bad"))
    scheduler.attend()
    assert [branch.commits.count() for branch in branches] == [0, 1, 1]
    assert only_fault("track a branch").item == "bad"


def test_weekly_report_does_not_keep_its_branch_from_being_tracked(
    laboratory: Laboratory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    branch = tracked(laboratory.commit(1))
    monkeypatch.setattr(weekly, "report", failing_once(weekly.report, lambda *_: True))
    scheduler.attend()
    assert branch.commits.get().runs.count() == 1
    only_fault("weekly report")


def test_alerts_of_a_branch(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    branch = tracked(laboratory.commit(1))
    laboratory.round()
    commit = branch.commits.get()
    alerts = [
        Alert.objects.create(branch=branch, since=commit, until=commit, state=AlertState.CONFIRMED) for _ in range(3)
    ]
    branch.commits.update(position=None)
    monkeypatch.setattr(followup, "_step", failing_once(followup._step, lambda alert: alert == alerts[0]))
    assert not followup.pursue(branch)
    assert [bool(alert.conclusion) for alert in branch.alerts.order_by("number")] == [False, True, True]
    assert only_fault("follow up an alert").item == str(alerts[0])
