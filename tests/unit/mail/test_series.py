# SPDX-License-Identifier: BSD-2-Clause
"""From the mails of a series, in any order, to a submission and the first response."""

import importlib
import itertools
import re
from contextlib import suppress
from datetime import timedelta

import pytest
from django.apps import apps
from django.conf import settings
from django.core import mail as sent

from perfweb.accounts.limits import Limit
from perfweb.accounts.models import Entry, Role, User
from perfweb.mail.intake import receive
from perfweb.mail.messages import IgnoredError
from perfweb.mail.models import PATIENCE, Posting, Series, SeriesState
from perfweb.mail.series import KEPT, UNKNOWN_SENDERS, forget
from perfweb.outbox.models import Letter
from perfweb.outbox.services import deliver
from perfweb.runs.models import Run
from perfweb.submissions import services
from perfweb.submissions.models import Submission, SubmissionState
from tests.checkouts import Checkout
from tests.unit.mail.conftest import OWN, SENDER, SIGNED, posted, receive_all, two_commits, with_header, work
from tests.unit.submissions.conftest import person

pytestmark = pytest.mark.django_db


def later(length: timedelta) -> None:
    """Let time pass for all series."""
    for series in Series.objects.all():
        series.changed -= length + timedelta(seconds=1)
        series.save()


def test_series_of_an_untrusted_user_waits_and_its_sender_gets_a_receipt(mails: list[bytes]) -> None:
    receive_all(mails)
    assert work() == 1
    submission = Submission.objects.get()
    assert (submission.state, submission.author.username) == (SubmissionState.WAITING, UNKNOWN_SENDERS)
    assert (submission.title, len(submission.stages)) == ("net: names", 2)
    assert not Run.objects.exists()
    assert Entry.objects.get(action="submit").means == "mail"
    letter = sent.outbox[0]
    cover = Posting.objects.get(number=0)
    assert (letter.to, letter.cc, letter.from_email, letter.subject) == (
        [SENDER],
        [],
        OWN,
        "Re: [PATCH 0/2] net: names",
    )
    assert letter.extra_headers["In-Reply-To"] == letter.extra_headers["References"] == cover.message_id
    assert letter.extra_headers["Auto-Submitted"] == "auto-replied"
    assert "waits until a maintainer has approved it" in str(letter.body)
    assert "The sender is not verified" in str(letter.body)
    assert max(map(len, str(letter.body).splitlines())) <= 72
    assert work() == 0  # and only once


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_mails_of_a_series_come_in_any_order(mails: list[bytes], order: tuple[int, ...]) -> None:
    for place in order[:2]:
        receive(mails[place])
        work()
    series = receive_all([mails[order[2]]])
    work()
    assert len(series) == 1
    assert [stage["subject"] for stage in Submission.objects.get().stages] == ["net: name five", "net: name thirty"]


@pytest.mark.parametrize("threading", ["--thread=deep", "--no-cover-letter"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (2, 1, 0)])
def test_every_way_of_threading(repository: Checkout, threading: str, order: tuple[int, ...]) -> None:
    two_commits(repository)
    made = posted(repository, 2, threading)
    made[0] = made[0].replace(b"---\n", b"perf: tcp\n---\n", 1) if len(made) == 2 else made[0] + b"\nperf: tcp\n"
    assert len(receive_all([made[place] for place in order if place < len(made)])) == 1
    work()
    assert len(Submission.objects.get().stages) == 2


def unthreaded(repository: Checkout, identifier: str) -> list[bytes]:
    """The mails of a series of which none answers another one; `{}` in their Message-IDs is their number."""
    two_commits(repository)
    made = posted(repository, 2, "--no-thread", asking="perf: tcp")
    return [with_header(mail, f"Message-ID: <{identifier.format(place)}>") for place, mail in enumerate(made)]


@pytest.mark.parametrize("identifier", ["20261101120000.77-{}-ada@example.org", "{}a@mailer.example"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_a_series_without_threading(repository: Checkout, identifier: str, order: tuple[int, ...]) -> None:
    made = unthreaded(repository, identifier)
    assert len(receive_all([made[place] for place in order])) == 1
    work()
    assert [stage["subject"] for stage in Submission.objects.get().stages] == ["net: name five", "net: name thirty"]


def test_series_without_threading_at_the_same_time(repository: Checkout) -> None:
    first = unthreaded(repository, "20261101120000.77-{}-ada@example.org")
    second = unthreaded(repository, "20261101120000.78-{}-ada@example.org")
    assert len(receive_all([mail for pair in zip(first, second, strict=True) for mail in pair])) == 2
    assert {series.postings.count() for series in Series.objects.all()} == {3}


def test_mails_without_threading_that_may_be_of_two_series_are_of_none(repository: Checkout) -> None:
    first, second = unthreaded(repository, "{}a@mailer.example"), unthreaded(repository, "{}b@mailer.example")
    receive_all([mail for pair in zip(first, second, strict=True) for mail in pair])
    later(PATIENCE)
    work()
    assert not Submission.objects.exists()


def test_a_mail_without_threading_that_comes_late_is_of_no_series(repository: Checkout) -> None:
    made = unthreaded(repository, "{}a@mailer.example")
    receive_all(made[:2])
    later(PATIENCE)
    assert len(receive_all(made[2:])) == 2


def test_mail_with_its_own_headers_is_its_senders(mails: list[bytes], ada: User) -> None:
    receive_all([SIGNED + mail for mail in mails])
    work()
    submission = Submission.objects.get()
    assert (submission.author, submission.state) == (ada, SubmissionState.APPROVED)
    assert "stranger" not in str(sent.outbox[0].body)


def test_forged_sender_has_no_standing(mails: list[bytes], ada: User) -> None:
    forged = SIGNED.replace(b"mx.service.example", b"mx.elsewhere.example")
    receive_all([mails[0], SIGNED.replace(b"=pass", b"=fail") + mails[1], forged + mails[2]])
    work()
    submission = Submission.objects.get()
    assert (submission.author.username, submission.state) == (UNKNOWN_SENDERS, SubmissionState.WAITING)


def test_forged_patch_does_not_get_into_a_proven_series(mails: list[bytes], ada: User) -> None:
    receive_all([SIGNED + mails[0], SIGNED + mails[1], mails[2]])
    work()
    assert not Submission.objects.exists()


def test_forged_mails_do_not_touch_the_series_of_a_proven_sender_without_an_account(
    repository: Checkout, mails: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfweb.mail.series.ANSWERS_WITHOUT_ACCOUNT", Limit("answers", 2, 60))
    receive_all([SIGNED + mails[0], SIGNED + mails[1], mails[2]])
    work()
    assert not Submission.objects.exists(), "a forged patch is no part of it"
    receive(mails[0].replace(b"Message-Id: <", b"Message-Id: <y").replace(b"perf: tcp quick", b"perf: nonsense"))
    receive(SIGNED + mails[2])
    assert Series.objects.filter(proven=True).count() == 1, "a proven copy takes the place of a forged one"
    work()
    submission = Submission.objects.get()
    answered = len(sent.outbox)
    message_id = re.search(rb"(?m)^Message-Id: (<.*>)", mails[0])
    assert message_id
    reply = b"From: " + SENDER.encode() + b"\nSubject: Re: net\nMessage-Id: <%d@x>\nIn-Reply-To: " + message_id[1]
    for number in range(5):
        with suppress(IgnoredError):
            receive(reply % number + b"\n\nperf: cancel\n")
    two_commits(repository, "fifth")
    receive_all(posted(repository, 2, "-v2", asking="perf: tcp quick"))
    work()
    submission.refresh_from_db()
    assert submission.state == SubmissionState.WAITING, "neither a forged reply nor a forged version cancels it"
    receive(SIGNED + reply % 9 + b"\n\nperf: cancel\n")
    work()
    submission.refresh_from_db()
    assert submission.state == SubmissionState.CANCELLED
    assert len(sent.outbox) > answered, "answers to forged mails have not spent the limit of the proven sender"


@pytest.mark.parametrize("taken", [False, True])
def test_the_account_of_unknown_senders_is_renamed_with_its_state(taken: bool) -> None:
    migration = importlib.import_module("perfweb.mail.migrations.0004_unknown_senders")
    User.objects.create(username=migration.OLD, role=Role.READER, is_active=False)
    if taken:
        User.objects.create(username=migration.NEW, role=Role.ADMIN)
    migration._rename(apps, migration.OLD, migration.NEW)
    account = User.objects.get(role=Role.READER)
    assert (account.username, account.is_active) == (migration.OLD if taken else UNKNOWN_SENDERS, False)


def test_proven_copy_takes_the_place_of_another(mails: list[bytes], ada: User) -> None:
    receive_all(mails)  # as a list sends them, or a quick reader
    receive_all([SIGNED + mail for mail in mails])
    with pytest.raises(IgnoredError, match="here already"):
        receive(mails[0])
    work()
    assert Submission.objects.get().author == ada
    assert Series.objects.count() == 1


def test_account_of_untrusted_senders_never_approves(mails: list[bytes]) -> None:
    User.objects.create(username=UNKNOWN_SENDERS, role=Role.ADMIN)
    receive_all(mails)
    work()
    assert Submission.objects.get().state == SubmissionState.WAITING


def test_untrusted_senders_can_be_kept_out(mails: list[bytes]) -> None:
    User.objects.create(username=UNKNOWN_SENDERS, role=Role.SUBMITTER, is_active=False)
    receive_all(mails)
    work()
    assert "people without an account here are not measured" in " ".join(str(sent.outbox[0].body).split())
    assert not Submission.objects.exists()


def test_series_that_makes_trouble_does_not_keep_others(
    repository: Checkout, mails: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    receive_all([mail.replace(b"ada@example.org", b"eve@example.org").replace(b"Id: <", b"Id: <x") for mail in mails])
    receive_all(mails)

    def trouble(series: Series, *_: object) -> list[int]:
        assert series.sender == SENDER
        return []

    monkeypatch.setattr("perfweb.mail.series._missing", trouble)
    assert work() == 1


def test_role_that_may_not_submit_is_reported(mails: list[bytes], ada: User) -> None:
    User.objects.update(role=Role.READER)
    receive_all([SIGNED + mail for mail in mails])
    work()
    assert "needs the role submitter" in " ".join(str(sent.outbox[0].body).split())
    assert Entry.objects.get(action="submit").outcome == "refused"


def test_without_a_request_nothing_happens(repository: Checkout) -> None:
    two_commits(repository)
    receive_all(posted(repository, 2))
    later(PATIENCE)
    assert work() == 0
    later(KEPT)
    work()
    assert not Series.objects.exists()
    assert not Letter.objects.exists()


def test_missing_patch_is_reported_once_and_waited_for(mails: list[bytes]) -> None:
    receive_all(mails[:2])
    assert work() == 0
    later(PATIENCE)
    assert [work(), work()] == [1, 0]
    assert "Patch 2 of this series of" in " ".join(str(sent.outbox[0].body).split())
    receive(mails[2])
    work()
    assert Submission.objects.exists()


def test_mail_that_comes_twice_is_taken_once(mails: list[bytes]) -> None:
    receive(mails[0])
    with pytest.raises(IgnoredError, match="here already"):
        receive(mails[0])


def reply(mail: bytes, words: str, sender: str = SENDER) -> bytes:
    """A reply to a mail, with its text quoted."""
    answered = re.search(rb"(?mi)^Message-Id: (<.*>)$", mail)
    assert answered is not None
    head = f"From: {sender}\nMessage-ID: <{abs(hash(words))}.{sender}>\nIn-Reply-To: {answered[1].decode()}\n"
    return f"{head}Subject: Re: [PATCH 0/2] net: names\n\n> perf: tcp quick\n{words}\n".encode()


@pytest.mark.parametrize("sender", [SENDER, "eve@example.org"])
def test_replies_without_a_request_are_left_alone(mails: list[bytes], sender: str) -> None:
    receive_all(mails)
    with pytest.raises(IgnoredError, match="no patch, by its subject, and has no request"):
        receive(reply(mails[1], "Nice.", sender))


@pytest.mark.parametrize("words", ["perf: cancel", "perf: tcp"])
def test_requests_about_the_series_of_another_are_answered_and_change_nothing(mails: list[bytes], words: str) -> None:
    receive_all(mails)
    work()
    receive(reply(mails[1], words, "eve@example.org"))
    assert work() == 1
    assert sent.outbox[-1].to == ["eve@example.org"]
    assert "no reply to a series that you sent here" in " ".join(str(sent.outbox[-1].body).split())
    assert Submission.objects.get().state == SubmissionState.WAITING


@pytest.mark.parametrize(
    ("words", "sentence"), [("perf: help", "Put one line"), ("perf: tcp", "This mail is no patch")]
)
def test_every_request_gets_an_answer(words: str, sentence: str) -> None:
    """Also one in a mail that is neither a patch nor a reply."""
    mail = f"From: Ada <{SENDER}>\nSubject: help\nMessage-ID: <h1@example.org>\n\n{words}\n".encode()
    receive(mail)
    receive(mail)
    assert work() == 1
    assert sent.outbox[-1].to == [SENDER]
    assert sent.outbox[-1].extra_headers["In-Reply-To"] == "<h1@example.org>"
    assert sentence in str(sent.outbox[-1].body)


HTML = """<html><head><title>x</title></head><body>
<div>Hello &amp; thanks,</div><div>{}<br></div>
<p>-- <br>Ada</p></body></html>"""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("perf: help", "Put one line"),
        ("perf:&nbsp;<b>help</b>", "Put one line"),
        ("perf: tcp", "None of these mails has a diff"),
        ("perf: tcp</div><pre>diff --git a/stack/a.c b/stack/a.c</pre><div>", "git send-email"),
    ],
)
@pytest.mark.parametrize("signed", [False, True])
def test_request_in_html_alone_gets_an_answer(words: str, sentence: str, signed: bool) -> None:
    head = f"From: Ada <{SENDER}>\nSubject: [PATCH] x\nMessage-ID: <h2@example.org>\nMIME-Version: 1.0\n"
    part = f"Content-Type: text/html; charset=utf-8\n\n{HTML.format(words)}\n"
    if signed:
        signature = "--x\nContent-Type: application/pgp-signature\n\nx\n--x--\n"
        part = f"Content-Type: multipart/signed; boundary=x\n\n--x\n{part}{signature}"
    receive(f"{head}{part}".encode())
    assert work() == 1
    assert sentence in str(sent.outbox[-1].body)
    assert not Submission.objects.exists()


@pytest.mark.parametrize(
    ("words", "sentence", "state"),
    [
        ("perf: status", "waiting for approval", SubmissionState.WAITING),
        ("perf: cancel", "cancelled", SubmissionState.CANCELLED),
        ("perf: help", "perf: tcp quick", SubmissionState.WAITING),
        ("perf: nonsense", "no tests “nonsense”", SubmissionState.WAITING),
        ("perf: udp", "as a new version", SubmissionState.WAITING),
    ],
)
def test_sender_may_ask_and_cancel(mails: list[bytes], words: str, sentence: str, state: SubmissionState) -> None:
    receive_all(mails)
    work()
    for _ in range(2):
        receive(reply(mails[0], words))
    assert deliver() == 1
    letter = sent.outbox[-1]
    assert sentence in " ".join(str(letter.body).split())
    assert letter.extra_headers["In-Reply-To"].endswith(f".{SENDER}>")
    assert Submission.objects.get().state == state


def test_reply_in_the_name_of_another_user_cancels_nothing(mails: list[bytes], ada: User) -> None:
    receive_all([SIGNED + mail for mail in mails])
    work()
    receive(reply(mails[0], "perf: cancel"))
    assert Submission.objects.get().state == SubmissionState.APPROVED
    receive(SIGNED + reply(mails[0], "perf: cancel"))
    assert Submission.objects.get().state == SubmissionState.CANCELLED


def test_new_version_takes_the_place_of_the_old(repository: Checkout, mails: list[bytes]) -> None:
    receive_all(mails)
    work()
    two_commits(repository, "fifth")
    for mail in posted(repository, 2, "-v2", asking="perf: tcp quick"):
        receive(mail)
    work()
    old, new = Submission.objects.order_by("number")
    assert (old.state, new.state) == (SubmissionState.CANCELLED, SubmissionState.WAITING)
    assert [series.state for series in Series.objects.all()] == [SeriesState.OVER, SeriesState.SUBMITTED]
    assert any("[PATCH v2 0/2] net: names” has come" in " ".join(str(letter.body).split()) for letter in sent.outbox)


@pytest.mark.parametrize("known", [False, True])
def test_new_version_with_the_same_diff_takes_the_place_of_the_waiting_one(
    repository: Checkout, mails: list[bytes], ada: User, *, known: bool
) -> None:
    ada.role = Role.SUBMITTER
    ada.save()
    head = SIGNED if known else b""
    receive_all([head + mail for mail in mails])
    work()
    receive_all([head + mail.replace(b".git.ada@", b".again.ada@") for mail in mails])
    work()
    assert Series.objects.filter(submissions=Submission.objects.get()).count() == 2
    two_commits(repository)
    for mail in posted(repository, 2, "-v2", asking="perf: tcp quick"):
        receive(head + mail)
    work()
    old, new = Submission.objects.order_by("number")
    assert (old.state, new.state) == (SubmissionState.CANCELLED, SubmissionState.WAITING)
    assert new.series.get().version == 2


def test_mails_of_a_series_that_was_over_long_ago_are_forgotten(mails: list[bytes]) -> None:
    receive_all(mails)
    work()
    later(timedelta(days=settings.MESSAGES_KEPT_DAYS))
    assert forget() == 0, "it is not over"
    Series.objects.update(state=SeriesState.OVER)
    assert [forget(), forget()] == [3, 0]
    with pytest.raises(IgnoredError, match="is here already"):
        receive(mails[1])
    assert bytes(Submission.objects.get().patch)


def test_forged_version_stops_nothing_that_is_proven(repository: Checkout, mails: list[bytes], ada: User) -> None:
    receive_all([SIGNED + mail for mail in mails])
    work()
    two_commits(repository, "fifth")
    for mail in posted(repository, 2, "-v2", asking="perf: tcp quick"):
        receive(mail)
    work()
    assert Submission.objects.filter(state=SubmissionState.APPROVED, author=ada).exists()


def test_approved_patch_of_an_untrusted_user_is_not_stopped_by_mail(repository: Checkout, mails: list[bytes]) -> None:
    receive_all(mails)
    work()
    Submission.objects.update(state=SubmissionState.APPROVED)
    two_commits(repository, "fifth")
    for mail in posted(repository, 2, "-v2", asking="perf: tcp quick"):
        receive(mail)
    work()
    assert Submission.objects.filter(state=SubmissionState.APPROVED).exists()


def test_patch_that_does_not_apply(repository: Checkout, mails: list[bytes]) -> None:
    repository.edit("stack/net/if.c", lambda text: text.replace("line5;", "another;"))
    base = repository.commit("meanwhile").encode()
    old = mails[0].rpartition(b"base-commit: ")[2].split()[0]
    receive_all([mail.replace(old, base) for mail in mails])
    work()
    body = str(sent.outbox[0].body)
    assert "does not apply" in body
    assert "  -int line5;" in body
    assert "  int another;" in body


@pytest.mark.parametrize(
    ("words", "sentence"),
    [("nonsense", "There are no tests"), ("help", "perf: tcp quick"), ("cancel", "perf: tcp quick")],
)
def test_words_that_are_not_known_are_answered_kindly(repository: Checkout, words: str, sentence: str) -> None:
    two_commits(repository)
    receive_all(posted(repository, 2, asking=f"perf: {words}"))
    assert [work(), work()] == [1, 0]
    assert sentence in str(sent.outbox[0].body)
    assert not Submission.objects.exists()


def test_two_requests_are_reported(mails: list[bytes]) -> None:
    receive_all([mails[0], mails[1].replace(b"---\n", b"perf: udp\n---\n", 1), mails[2]])
    work()
    assert "have different requests" in " ".join(str(sent.outbox[0].body).split())


def test_the_reply_to_the_same_patch_names_the_existing_submission(mails: list[bytes]) -> None:
    receive_all(mails)
    receive_all([re.sub(rb"(?m)^(Message-Id|In-Reply-To|References): <", rb"\1: <again.", mail) for mail in mails])
    work()
    first, second = Series.objects.all()
    assert first.submissions.get() == second.submissions.get()


def test_nobody_is_answered_without_end(repository: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfweb.mail.series.ANSWERS_WITHOUT_ACCOUNT", Limit("answers", 1, 60))
    two_commits(repository)
    made = posted(repository, 1)[0].replace(b"---\n", b"perf: nonsense\n---\n", 1)
    receive_all([made, made.replace(b"Message-Id: <", b"Message-Id: <x")])
    assert work() == 1


def test_headers_of_a_mail_do_not_get_into_the_answer(repository: Checkout) -> None:
    two_commits(repository)
    made = posted(repository, 1)[0].replace(b"---\n", b"perf: nonsense\n---\n", 1)
    subject = "Subject: =?utf-8?q?[PATCH]_a=0ABcc:_eve=40evil.example?="
    kept = b"\n".join(line for line in made.split(b"\n") if not line.startswith(b"Subject:"))
    receive(with_header(kept, subject, "References: <a@b>\r <c@d>\x00 Bcc: eve@evil.example"))
    work()
    letter = sent.outbox[0]
    assert letter.recipients() == [SENDER]
    assert "Bcc" not in letter.message()
    assert letter.extra_headers["References"].startswith("<a@b> <c@d> <")


def test_refusal_is_for_the_sender_alone(mails: list[bytes]) -> None:
    receive_all([with_header(mail, "List-Id: <net.lists.example>") for mail in mails])
    work()
    services.refuse(person("maintainer", Role.MAINTAINER), Submission.objects.get().number, "reads keys")
    work()
    letter = sent.outbox[-1]
    assert (letter.cc, "refused: reads keys" in str(letter.body)) == ([], True)
