# SPDX-License-Identifier: BSD-2-Clause
"""Series of a Patchwork become submissions once, and their patches get checks, by the documented REST API."""

from __future__ import annotations

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Means, Role, User
from perfweb.builds import mirrors
from perfweb.builds.models import Mirror
from perfweb.faults.models import Fault
from perfweb.outbox.models import Letter
from perfweb.outbox.services import deliver
from perfweb.patchwork import checks, client, polling
from perfweb.patchwork.client import Client, ShapeError, site_of, token_file
from perfweb.patchwork.models import Project, Series
from perfweb.runs.models import Boot, BootState, Run, RunState
from perfweb.submissions import services
from perfweb.submissions.models import Submission, SubmissionState
from tests.checkouts import Checkout
from tests.factories import create_boot, create_run, create_testbed
from tests.locks import waiting
from tests.unit.accounts.conftest import forget_limits
from tests.unit.imports.test_counted import ROUND_TRIP, imported
from tests.unit.patchwork.peer import FIRST, PROJECT, TOKEN, Patchwork
from tests.waiting import wait_for

INNER = "http://169.254.169.254/"


@pytest.fixture
def patchwork() -> Iterator[Patchwork]:
    peer = Patchwork()
    peer.start()
    yield peer
    peer.stop()
    assert peer.complaints == []


@pytest.fixture
def project(patchwork: Patchwork, checkout: Checkout, settings: Settings, tmp_path: Path, db: None) -> Project:
    settings.PERFWEB_VAR = tmp_path / "var"
    settings.FORGE_SECRETS = tmp_path / "secrets"
    forget_limits()
    mirror = Mirror.objects.create(name="net-next", url=str(checkout.tree))
    mirrors.fetch(mirror)
    User.objects.create(username="patchwork", role=Role.MAINTAINER)
    made = Project.objects.create(
        name="netdev", api=patchwork.api, project=PROJECT, states=["new", "under-review"], mirror=mirror,
        testbed=create_testbed(), matrix="tcp-quick", account=User.objects.get(username="patchwork"),
        since=FIRST.replace(tzinfo=UTC), due=timezone.now(),
    )  # fmt: skip
    token_file(made).parent.mkdir()
    token_file(made).write_text(TOKEN)
    return made


def poll(project: Project, later: timedelta = timedelta()) -> None:
    """Poll now, whenever it is due."""
    Project.objects.filter(pk=project.pk).update(due=timezone.now())
    polling.poll_all(timezone.now() + later)
    project.refresh_from_db()


def whole(series: bytes) -> list[bytes]:
    """The mails of a series that git has written into one file, without its cover letter."""
    return [b"From " + part + b"\n" for part in series.split(b"\nFrom ")[1:]]


def alone(mail: bytes) -> bytes:
    """A mail of a series as one that has no others."""
    return mail.replace(b"[PATCH 1/2]", b"[PATCH]").replace(b"[PATCH 2/2]", b"[PATCH]")


def approve(submission: Submission) -> None:
    user, _ = User.objects.get_or_create(username="maintainer", defaults={"role": Role.MAINTAINER})
    services.approve(Actor(user.username, user.role, Means.PAGE, user=user), submission.number)


def finish(submission: Submission, run: Run) -> None:
    submission.runs.all().delete()
    submission.runs.add(run)


def post() -> None:
    checks.follow()
    deliver()


def states(patchwork: Patchwork) -> list[tuple[int, str]]:
    return [(patch, check["state"]) for patch, check in patchwork.checks]


def test_each_series_is_submitted_once_and_waits_for_approval(
    project: Project, patchwork: Patchwork, series: bytes
) -> None:
    sent = patchwork.receive("net: name two lines", *whole(series))
    poll(project)
    poll(project)
    submission = Submission.objects.get()
    assert (submission.title, submission.state) == ("net: name two lines", SubmissionState.WAITING)
    stored = Series.objects.get()
    assert (stored.number, stored.patches, stored.submission) == (sent.number, sent.patches, submission)
    assert project.problem == ""


def test_all_pages_are_read_and_addresses_in_answers_are_not_followed(
    project: Project, patchwork: Patchwork, series: bytes
) -> None:
    for number in range(3):
        patchwork.receive(f"series {number}", *whole(series))
    assert len(list(Client(project).patches())) == 3 * len(whole(series))
    poll(project)
    assert Series.objects.count() == 3
    # Two lists; then two requests for each series. The lists' next pages and the mailboxes have INNER as addresses.
    assert INNER in str(patchwork.patch(0, patchwork.series[900]))
    assert project.problem == ""


def test_only_patches_in_the_wanted_states_are_measured(project: Project, patchwork: Patchwork, series: bytes) -> None:
    patchwork.receive("old", *whole(series), state="superseded")
    poll(project)
    assert not Series.objects.exists()


def test_a_server_without_filters_is_filtered_here(project: Project, patchwork: Patchwork, series: bytes) -> None:
    sent = patchwork.receive("old", *whole(series), state="accepted")
    patchwork.answers = [(200, [patchwork.patch(sent.patches[0], sent)], {})]
    poll(project)
    assert not Series.objects.exists()


def test_a_series_waits_for_its_patches_and_not_for_ever(project: Project, patchwork: Patchwork, series: bytes) -> None:
    sent = patchwork.receive("net: half", *whole(series), whole=False)
    poll(project)
    assert (Series.objects.get().submission, Series.objects.get().problem) == (None, "")
    sent.whole = True
    poll(project)
    assert Series.objects.get().submission is not None
    patchwork.receive("net: lost", *whole(series), whole=False)
    poll(project)
    poll(project, polling.PATIENCE + timedelta(minutes=6))
    assert Series.objects.last().problem == "Not all of its patches have arrived."  # type: ignore[union-attr]


def test_incomplete_series_do_not_keep_others_waiting(project: Project, patchwork: Patchwork, series: bytes) -> None:
    """Anyone can mail the first half of many series."""
    for number in range(2 * polling.AT_ONCE):
        patchwork.receive(f"net: half {number}", *whole(series), whole=False)
    patchwork.receive("net: whole", *whole(series))
    for _ in range(3):
        poll(project)
    assert Submission.objects.get().title == "net: whole"
    assert len([call for call in patchwork.calls if call == "GET /api/1.3/series/900/"]) <= 2


def test_what_is_known_is_not_read_again(project: Project, patchwork: Patchwork, series: bytes) -> None:
    patchwork.receive("first", *whole(series))
    poll(project)
    last = max(number for sent in patchwork.series.values() for number in sent.patches)
    assert project.since == FIRST.replace(tzinfo=UTC) + timedelta(minutes=last)


@pytest.mark.django_db(transaction=True)
def test_two_messengers_poll_a_project_once(project: Project, patchwork: Patchwork, series: bytes) -> None:
    patchwork.receive("net: name two lines", *whole(series))

    def work() -> None:
        try:
            polling.poll_all()
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as messengers:
        with transaction.atomic():
            Project.objects.select_for_update().get()
            polls = [messengers.submit(work) for _ in range(2)]
            wait_for(lambda: waiting() == 2, "two polls")  # both have read that the project is due
        for one in polls:
            one.result()
    assert (Submission.objects.count(), Fault.objects.count()) == (1, 0)
    assert patchwork.calls.count("GET /api/1.3/series/900/") == 1


def test_a_date_of_the_future_does_not_end_the_polling(project: Project, patchwork: Patchwork, series: bytes) -> None:
    sent = patchwork.receive("first", *whole(series))
    late = patchwork.patch(sent.patches[0], sent) | {"date": "2999-01-01T00:00:00"}
    patchwork.answers = [(200, [late], {})]
    poll(project)
    assert project.since <= timezone.now()


def test_a_newer_version_ends_the_older_one(project: Project, patchwork: Patchwork, series: bytes) -> None:
    patchwork.receive("net: name", *whole(series))
    poll(project)
    patchwork.receive("net: name", alone(whole(series)[0]), version=2)
    patchwork.receive("net: name", alone(whole(series)[-1]), version=3, submitter=8)  # of another sender
    poll(project)
    first, second, *_ = Submission.objects.order_by("number")
    assert (first.state, second.state) == (SubmissionState.CANCELLED, SubmissionState.WAITING)


def test_series_of_one_version_stay_beside_each_other(project: Project, patchwork: Patchwork, series: bytes) -> None:
    for mail in (whole(series)[0], whole(series)[-1]):
        patchwork.receive("net: name", alone(mail))
        poll(project)
    assert {one.state for one in Submission.objects.all()} == {SubmissionState.WAITING}
    assert Submission.objects.count() == 2


def test_a_series_without_a_patch_has_a_reason(project: Project, patchwork: Patchwork) -> None:
    patchwork.receive("no patch", b"From x Mon Sep 17 00:00:00 2001\nSubject: [PATCH] nothing\n\nText.\n")
    poll(project)
    stored = Series.objects.get()
    assert stored.submission is None
    assert stored.problem


def test_a_quota_is_no_end(project: Project, patchwork: Patchwork, series: bytes, settings: Settings) -> None:
    settings.OPEN_SUBMISSIONS = 0
    patchwork.receive("net: name", *whole(series))
    poll(project)
    assert (Series.objects.get().submission, Series.objects.get().problem) == (None, "")
    settings.OPEN_SUBMISSIONS = 5
    poll(project)
    assert Series.objects.get().submission is not None


@pytest.mark.parametrize(
    ("status", "body", "headers", "expected"),
    [
        (302, b"", {"Location": f"{INNER}latest/meta-data/"}, "302"),
        (404, {"detail": "Not found."}, {}, "404"),
        (500, b"oops", {}, "500"),
        (200, b"<html>", {}, "the answer"),
        (200, {"detail": "no list"}, {}, "no list of up to"),
        (200, [{"id": "x"}], {}, "an answer has no date"),
        (200, [{"id": 1, "date": "x", "state": "new", "series": []}], {}, "no date in ISO 8601"),
        (200, [{"id": -1, "date": "2026-11-01T12:00:00", "state": "new", "series": []}], {}, "which is no number"),
        (200, b"[" * 100_000, {}, "the answer"),
        (200, b"x" * (4 << 20) + b"x", {}, "larger than"),
    ],
)
def test_an_error_is_kept_with_the_project_and_the_next_poll_goes_on(
    project: Project, patchwork: Patchwork, series: bytes, status: int, body: object, headers: dict[str, str],
    expected: str,
) -> None:  # fmt: skip
    patchwork.receive("net: name", *whole(series))
    patchwork.answers = [(status, body, headers)]
    poll(project)
    assert expected in project.problem
    assert len(patchwork.calls) == 1
    assert not Fault.objects.exists()
    poll(project)
    assert project.problem == ""
    assert Submission.objects.count() == 1


def test_a_slow_server_does_not_hold_the_messenger(
    project: Project, patchwork: Patchwork, series: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    patchwork.receive("net: name", *whole(series))
    monkeypatch.setattr(client, "SECONDS", -1.0)
    poll(project)
    assert "the next one goes on" in project.problem
    assert patchwork.calls == []


def test_retry_after_is_obeyed(project: Project, patchwork: Patchwork) -> None:
    patchwork.answers = [(429, {"detail": "slow down"}, {"Retry-After": "3600"})]
    poll(project)
    assert project.due > timezone.now() + timedelta(minutes=50)


def test_an_error_about_one_series_is_of_that_series(project: Project, patchwork: Patchwork, series: bytes) -> None:
    bad = patchwork.receive("net: bad", *whole(series))
    patchwork.receive("net: good", alone(whole(series)[0]))
    good_list = patchwork.answer(
        "GET", f"/api/1.3/patches/?project={PROJECT}&state=new&since=2026-11-01&per_page=9&page=1", {}, b""
    )
    patchwork.answers = [(200, good_list[1], {}), (200, {"id": bad.number}, {})]
    patchwork.per_page = 100
    poll(project)
    problems = dict(Series.objects.values_list("number", "problem"))
    assert "no patches that is list" in problems[bad.number]
    patchwork.per_page = 2
    poll(project)
    assert Submission.objects.get().title == "net: good"


def test_checks_follow_a_run(project: Project, patchwork: Patchwork, series: bytes) -> None:
    sent = patchwork.receive("net: name", *whole(series))
    poll(project)
    post()
    post()
    assert states(patchwork) == [(patch, "pending") for patch in sent.patches]
    submission = Submission.objects.get()
    approve(submission)
    finish(submission, create_run(tests=["tcp.rr/host-host/ipv4"], boots=4, gain=0.9))
    patchwork.checks.clear()
    post()
    assert states(patchwork) == [(patch, "warning") for patch in sent.patches]
    (_, check), *_ = patchwork.checks
    assert check["context"] == "perfweb-measured"
    assert check["description"] == "Slower: 1 slower"
    assert check["target_url"] == submission.address
    post()
    assert len(patchwork.checks) == len(sent.patches)
    assert Series.objects.get().settled


def test_a_patch_that_does_not_run_fails_its_check(project: Project, patchwork: Patchwork, series: bytes) -> None:
    patchwork.receive("net: name", *whole(series))
    poll(project)
    submission = Submission.objects.get()
    approve(submission)
    run = submission.runs.get()
    for position, (variant, error) in enumerate((("base", ""), ("patch", "panic: Kernel panic"))):
        boot = create_boot(run, run.variants.get(name=variant), "host-host", "none", position)
        state = BootState.FAILED if error else BootState.STOPPED
        Boot.objects.filter(pk=boot.pk).update(state=state, error=error)
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE)
    post()
    assert {state for _, state in states(patchwork)} == {"fail"}
    assert patchwork.checks[0][1]["description"] == "Patch does not run: panic: Kernel panic"


def test_a_patch_that_could_not_be_measured_has_not_failed(
    project: Project, patchwork: Patchwork, series: bytes
) -> None:
    patchwork.receive("net: name", *whole(series))
    poll(project)
    submission = Submission.objects.get()
    approve(submission)
    submission.runs.update(state=RunState.FAILED, reason="the lab is away")
    post()
    assert {state for _, state in states(patchwork)} == {"warning"}


def test_the_check_of_a_counted_series_names_the_function(
    project: Project, patchwork: Patchwork, series: bytes, tmp_path: Path
) -> None:
    patchwork.receive("net: name", *whole(series))
    poll(project)
    submission = Submission.objects.get()
    approve(submission)
    finish(submission, imported(tmp_path))
    post()
    assert {state for _, state in states(patchwork)} == {"warning"}
    description = patchwork.checks[-1][1]["description"]
    assert description == f"1 more, 0 fewer, 1 equal loads; tcp_v4_rcv +20.0000 instructions in {ROUND_TRIP}"


def test_a_series_that_does_not_apply_fails_its_check(project: Project, patchwork: Patchwork, series: bytes) -> None:
    patchwork.receive("net: name", *[mail.replace(b"line", b"other") for mail in whole(series)])
    poll(project)
    assert Submission.objects.get().state == SubmissionState.CONFLICT
    post()
    assert {state for _, state in states(patchwork)} == {"fail"}


def test_a_token_that_is_missing_or_refused_is_waited_for(
    project: Project, patchwork: Patchwork, series: bytes
) -> None:
    token_file(project).write_text("")
    patchwork.receive("net: name", *whole(series))
    poll(project)
    post()
    assert patchwork.checks == []
    assert "has to hold at least 20 characters" in Letter.objects.first().problem  # type: ignore[union-attr]
    token_file(project).write_text("another token of twenty characters")
    deliver(timezone.now() + timedelta(hours=1))
    assert "403" in Letter.objects.first().problem  # type: ignore[union-attr]
    token_file(project).write_text(TOKEN)
    deliver(timezone.now() + timedelta(hours=3))
    assert len(patchwork.checks) == len(Series.objects.get().patches)


@pytest.mark.parametrize(
    ("api", "site"),
    [
        ("https://patchwork.example.org/api/1.3", "https://patchwork.example.org"),
        ("https://example.org/pw/api/", "https://example.org/pw"),
        ("https://example.org/pw", None),
        ("https://example.org/api/2.0", None),
    ],
)
def test_an_address_of_an_api_has_a_site(api: str, site: str | None) -> None:
    if site is None:
        with pytest.raises(ValueError, match="no API of Patchwork"):
            site_of(api)
    else:
        assert site_of(api) == site


def test_a_long_series_is_refused_before_its_mails_are_read(project: Project, patchwork: Patchwork) -> None:
    sent = patchwork.receive("long", *[b"x"] * 65)
    with pytest.raises(ShapeError, match="65 patches"):
        Client(project).series(sent.number)


COMMAND = [
    "register_patchwork", "bpf", "--project", "netdevbpf", "--repository", "net-next", "--testbed", "demo",
    "--account", "patchwork", "--api",
]  # fmt: skip


def test_the_command_registers_a_project(project: Project) -> None:
    printed = io.StringIO()
    call_command(*COMMAND, "https://patchwork.example.org/api/1.3", stdout=printed)
    made = Project.objects.get(name="bpf")
    assert (made.states, made.matrix) == (["new", "under-review"], "tcp-quick")
    assert str(token_file(made)) in printed.getvalue()
    assert token_file(made).stat().st_mode & 0o77 == 0
    since = made.since
    call_command(*COMMAND, "https://patchwork.example.org/api", "--state", "new", stdout=printed)
    made.refresh_from_db()
    assert (made.states, made.since) == (["new"], since)


@pytest.mark.parametrize(
    "api", ["http://patchwork.example.org/api", "/srv/api", "https://a:b@x.org/api", "https://x.org"]
)
def test_the_command_refuses_other_addresses(project: Project, api: str) -> None:
    with pytest.raises(CommandError):
        call_command(*COMMAND, api)
    assert not Project.objects.filter(name="bpf").exists()


def test_the_first_poll_begins_with_the_registration(project: Project) -> None:
    call_command(*COMMAND, "https://patchwork.example.org/api", stdout=io.StringIO())
    assert Project.objects.get(name="bpf").since > datetime(2026, 1, 1, tzinfo=UTC)
