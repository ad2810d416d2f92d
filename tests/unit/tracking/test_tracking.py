# SPDX-License-Identifier: BSD-2-Clause
"""From commits to alerts, with real repositories and a laboratory that measures queued runs."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from pytest_django import Settings

from perfweb.accounts.actors import on_server
from perfweb.builds.models import Mirror
from perfweb.outbox.models import Letter
from perfweb.runs.models import Priority
from perfweb.tracking.alerts.followup import pursue
from perfweb.tracking.models import Alert, AlertState, Analysis
from perfweb.tracking.services import AlertUpdate, update_alert
from tests.laboratory import KERNEL, PLAN, ROUND_TRIPS, STREAM, Laboratory, tracked
from tests.silent import SilentServer

pytestmark = pytest.mark.django_db


def history(laboratory: Laboratory, speeds: list[float]) -> list[str]:
    return [laboratory.commit(number, speed) for number, speed in enumerate(speeds)]


def test_every_commit_is_measured_once_the_newest_first(laboratory: Laboratory) -> None:
    shas = history(laboratory, [1.0] * 4)
    branch = tracked(shas[0])
    runs = laboratory.rest()
    measured = [run.tracked_commits.get().sha for run in runs]
    assert measured[0] == shas[-1]
    assert sorted(measured) == sorted(shas)
    assert {run.priority for run in runs} == {Priority.LOW}
    assert branch.alerts.count() == 0


def test_a_commit_that_leaves_the_stack_as_it_is_is_not_measured(laboratory: Laboratory) -> None:
    first = laboratory.commit(1)
    laboratory.checkout.put("README.md", "Other words.\n")
    laboratory.checkout.commit("docs: other words")
    last = laboratory.commit(2)
    branch = tracked(first)
    laboratory.rest()
    assert list(branch.commits.values_list("sha", "position")) == [(first, 1), (last, 3)]


def test_a_change_is_confirmed_reported_and_blamed_on_its_commit(laboratory: Laboratory, settings: Settings) -> None:
    settings.MAIL_ADDRESS = "perf@lab.example"
    shas = history(laboratory, [1.0] * 8 + [0.93] * 8)
    branch = tracked(shas[0], mail_to="ada@example.org", hook="https://chat.example.org/hook")
    laboratory.rest()
    alert = branch.alerts.get()
    assert alert.culprit is not None
    assert alert.culprit.sha == shas[8]
    assert alert.probability is not None
    assert alert.probability > 0.95
    assert AlertState(alert.state) == AlertState.CONFIRMED
    moved = {(row.test, row.confirmed, row.better) for row in alert.movements.all()}
    assert moved == {(STREAM, True, False), (ROUND_TRIPS, True, False)}
    for movement in alert.movements.all():
        assert movement.low is not None
        assert movement.high is not None
        assert movement.low < -7 < movement.high
    posted = [letter.content["data"] for letter in Letter.objects.filter(channel="hook:http")]
    assert [one["commit"] for one in posted] == [None, shas[8]]
    assert posted[1]["occasion"] == "ended"
    assert {one["test"] for one in posted[1]["movements"]} == {STREAM, ROUND_TRIPS}
    subjects = [letter.content["subject"] for letter in Letter.objects.filter(channel="mail:smtp")]
    assert len(subjects) == 2
    assert all("net: number 8" in subject or "after" in subject for subject in subjects)
    assert "probability" in Letter.objects.filter(channel="mail:smtp").last().content["text"]  # type: ignore[union-attr]


def test_seldom_measured_commits_are_bisected(laboratory: Laboratory) -> None:
    shas = history(laboratory, [1.0] * 29 + [1.12] * 27)
    branch = tracked(shas[0], rhythm="every", every=5)
    runs = laboratory.rest()
    alert = branch.alerts.get()
    assert alert.culprit is not None
    assert alert.culprit.sha == shas[29]
    assert all(movement.better for movement in alert.movements.all())
    assert len(runs) < 25


def test_noise_raises_no_alert(laboratory: Laboratory) -> None:
    laboratory.noise = 0.02
    shas = history(laboratory, [1.0] * 30)
    branch = tracked(shas[0])
    laboratory.rest()
    assert not branch.alerts.exclude(state=AlertState.REFUTED).exists()
    assert Letter.objects.count() == 0


@pytest.mark.parametrize("plan", [PLAN, PLAN.replace("baseline", f"{KERNEL}baseline")])
def test_a_slower_machine_is_no_change_if_the_plan_has_a_reference(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    shas = [laboratory.commit(number) for number in range(8)]
    branch = tracked(shas[0], plan=plan)
    laboratory.rest()
    level = Laboratory.level
    monkeypatch.setattr(Laboratory, "level", lambda self, sha, test: 0.9 * level(self, sha, test))
    for number in range(8, 16):
        laboratory.commit(number)
    laboratory.rest()
    assert branch.alerts.exists() == (plan == PLAN)


def test_a_reference_is_in_no_alert_and_not_measured_again(laboratory: Laboratory) -> None:
    shas = [laboratory.commit(number, 1.0 if number < 8 else 0.93) for number in range(16)]
    branch = tracked(shas[0], plan=PLAN.replace("baseline", f"{KERNEL}baseline"))
    laboratory.rest()
    alert = branch.alerts.get()
    assert (alert.state, alert.culprit and alert.culprit.sha) == (AlertState.CONFIRMED, shas[8])
    assert {variant.name for check in alert.checks.all() for variant in check.run.variants.all()} == {
        "direct", "before-direct",
    }  # fmt: skip


def test_an_acknowledged_alert_stays_the_only_one_until_the_next_change(laboratory: Laboratory) -> None:
    shas = [laboratory.commit(number, 1.0 if number < 8 else 0.9) for number in range(16)]
    branch = tracked(shas[0])
    laboratory.rest()
    first = branch.alerts.get()
    update_alert(on_server(), first.pk, AlertUpdate(state=AlertState.ACKNOWLEDGED, text="It was meant."))
    letters = Letter.objects.count()
    for number in range(16, 24):
        laboratory.commit(number, 0.9)
        laboratory.rest()
    assert (branch.alerts.get().state, Letter.objects.count()) == (AlertState.ACKNOWLEDGED, letters)
    later = [laboratory.commit(number, 0.8) for number in range(24, 32)]
    laboratory.rest()
    second = branch.alerts.exclude(pk=first.pk).get()
    assert (second.state, second.culprit and second.culprit.sha) == (AlertState.CONFIRMED, later[0])


def test_what_is_not_seen_again_is_reported_to_nobody(laboratory: Laboratory, settings: Settings) -> None:
    """The machine was slow for a while: measured alternately, both commits are as fast."""
    settings.MAIL_ADDRESS = "perf@lab.example"
    shas = history(laboratory, [1.0] * 6 + [0.95] * 6)
    branch = tracked(shas[0], mail_to="ada@example.org")
    while not branch.alerts.exists():
        laboratory.round()
        if Alert.objects.exists():
            laboratory.speed = dict.fromkeys(laboratory.speed, 1.0)
    # The confirming run was measured in the round that made the alert, with the earlier speeds.
    alert = branch.alerts.get()
    check = alert.checks.get()
    check.run.boots.all().delete()
    check.run.summaries.all().delete()
    laboratory.measure(check.run)
    laboratory.rest()
    alert.refresh_from_db()
    assert AlertState(alert.state) == AlertState.REFUTED
    assert "did not confirm it" in alert.conclusion
    assert Letter.objects.count() == 0


def test_a_commit_that_does_not_build_is_skipped_and_reported(laboratory: Laboratory) -> None:
    shas = history(laboratory, [1.0] * 12 + [0.9] * 12)
    laboratory.broken = {shas[11], shas[12]}
    branch = tracked(shas[0])
    laboratory.rest()
    alert = branch.alerts.get()
    assert alert.culprit is None
    assert "cannot be measured" in alert.conclusion
    assert "One of 3 commits" in alert.conclusion


def test_changes_at_two_places_are_two_alerts(laboratory: Laboratory) -> None:
    shas = history(laboratory, [1.0] * 8 + [0.97] * 8 + [1.09] * 8)
    branch = tracked(shas[0])
    laboratory.rest()
    assert {alert.culprit.sha for alert in branch.alerts.all() if alert.culprit} == {shas[8], shas[16]}
    assert branch.alerts.count() == 2


def test_a_report_names_the_other_commits_where_two_moved_in_a_range(laboratory: Laboratory) -> None:
    shas = history(laboratory, [1.0] * 46 + [0.985] + [0.93] * 33)
    branch = tracked(shas[0], rhythm="every", every=20)
    laboratory.rest()
    alert = next(alert for alert in branch.alerts.all() if alert.culprit and alert.culprit.sha == shas[47])
    own = re.search(r", of which \S(\d\.\d\d)\s% \(.* came with this commit", alert.conclusion)
    assert own is not None
    assert float(own[1]) == pytest.approx(100 * (1 - 0.93 / 0.985), abs=0.7)


def test_analyses_are_versions_that_stay(laboratory: Laboratory) -> None:
    shas = history(laboratory, [1.0] * 8 + [0.93] * 4)
    branch = tracked(shas[0])
    laboratory.rest()
    seen = list(Analysis.objects.values_list("version", "reason"))
    shifts = list(Analysis.objects.order_by("version").last().shifts.values_list("percent", flat=True))  # type: ignore[union-attr]
    for number in range(8):
        laboratory.commit(100 + number, 0.93 * 1.2)
    laboratory.rest()
    assert list(Analysis.objects.values_list("version", "reason"))[-len(seen) :] == seen
    assert branch.analyses.count() > len(seen)
    assert "more results" in branch.analyses.first().reason  # type: ignore[union-attr]
    assert shifts


def test_a_rewritten_branch_is_labelled_and_keeps_its_results(laboratory: Laboratory) -> None:
    shas = history(laboratory, [1.0] * 3)
    branch = tracked(shas[0])
    laboratory.rest()
    laboratory.checkout.git("reset", "-q", "--hard", shas[1])
    laboratory.commit(50)
    laboratory.rest()
    gone = branch.commits.get(sha=shas[2])
    assert gone.position is None
    assert gone.runs.count() == 1
    laboratory.checkout.git("reset", "-q", "--hard", f"{shas[0]}^")
    laboratory.commit(51)
    laboratory.round()
    branch.refresh_from_db()
    assert "rewritten" in branch.problem


def test_a_repository_that_does_not_answer_is_reported_on_its_page_and_delays_no_other(
    laboratory: Laboratory, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfweb.builds.mirrors.MESSENGER_SECONDS", 1.0)
    monkeypatch.setattr("perfweb.builds.mirrors.RESTS", 600.0)
    first = laboratory.commit(1)
    mirror = Mirror.objects.create(name="theirs", url=str(laboratory.checkout.tree))
    tracked(first, name="another", mirror="theirs")
    tracked(first)
    with SilentServer() as server:
        Mirror.objects.filter(pk=mirror.pk).update(url=f"{server.url}/x.git")
        for number, words in enumerate(("longer than 1 s", "the next attempt is possible in"), 2):
            [run] = laboratory.round()
            assert run.tracked_commits.get().branch.name == "head"
            assert words in client.get("/tracking/another/").content.decode()
            laboratory.commit(number)
        assert server.connections == 1


@pytest.mark.parametrize("name", ["next", "broken"])
def test_another_branch_of_a_repository_never_stalls_silently(laboratory: Laboratory, name: str) -> None:
    first = laboratory.commit(1)
    for each in ("next", "broken"):
        laboratory.checkout.git("branch", each)
    Mirror.objects.create(name="theirs", url=str(laboratory.checkout.tree))
    branch = tracked(first, name="another", mirror="theirs", branch=name)
    laboratory.rest()
    newest = laboratory.commit(2)
    laboratory.checkout.git("branch", "-f", "next")
    laboratory.checkout.put_malformed_branch("broken")
    laboratory.round()
    branch.refresh_from_db()
    assert branch.commits.filter(sha=newest).exists() == (name == "next")
    assert ("cannot be fetched" in branch.problem) == (name == "broken")


def test_a_bisection_in_progress_reports_that_the_branch_was_rewritten(
    laboratory: Laboratory, settings: Settings
) -> None:
    settings.MAIL_ADDRESS = "perf@example.org"
    branch = tracked(laboratory.commit(1), mail_to="ada@example.org")
    laboratory.round()
    commit = branch.commits.get()
    alert = Alert.objects.create(branch=branch, since=commit, until=commit, state=AlertState.CONFIRMED)
    branch.commits.update(position=None)
    assert not pursue(branch)
    alert.refresh_from_db()
    assert "rewritten" in alert.conclusion
    assert "rewritten" in Letter.objects.get(key=f"alert.{alert.number}.ended").content["text"]
