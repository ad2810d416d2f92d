# SPDX-License-Identifier: BSD-2-Clause
"""Series as people really send them: subjects of every form, rerolls in old threads, relays and lists."""

from __future__ import annotations

import itertools
import re
from contextlib import suppress

import pytest
from django.core import mail as sent
from pytest_django import Settings

from perfweb.accounts.models import Role, User
from perfweb.builds.patches import read_series
from perfweb.mail.intake import receive
from perfweb.mail.messages import IgnoredError, Message, Rules, read_message
from perfweb.mail.models import Series, SeriesState
from perfweb.mail.series import ANSWERS_WITHOUT_ACCOUNT
from perfweb.submissions.models import Submission, SubmissionState
from tests.checkouts import Checkout
from tests.unit.mail.conftest import SENDER, SIGNED, posted, receive_all, two_commits, with_header, work

DIFF = "--- a/stack/net/if.c\n+++ b/stack/net/if.c\n@@ -1 +1 @@\n-a\n+b\n"
RULES = Rules("perf@service.example", "mx.service.example", {"net.lists.example": "net@lists.example"})


def read(subject: str, body: str = f"---\n{DIFF}", head: str = f"From: Ada <{SENDER}>\n") -> Message:
    content = f"{head}Subject: {subject}\nMessage-ID: <1@example.org>\n\n{body}"
    return read_message(content.encode(), RULES)


@pytest.mark.parametrize(
    ("subject", "version", "number", "total"),
    [
        ("[PATCH1/8] net: x", 1, 1, 8),
        ("[PATCH 01/10] net: x", 1, 1, 10),
        ("[PATCHv2 1/2] net: x", 2, 1, 2),
        ("[PATCHv2] net: x", 2, None, None),
        ("[PATCH V2] net: x", 2, None, None),
        ("[PATCH V2 0/1] net: x", 2, 0, 1),
        ("[RFCv2] net: x", 2, None, None),
        ("[RFC PATCH v12,3/4] net: x", 12, 3, 4),
        ("[PATCH RESENDv3 3/4] net: x", 3, 3, 4),
        ("[tcp 2/3] net: x", 1, 2, 3),
        ("[PATCH net-next v3 01/10] net: x", 3, 1, 10),
        ("[PATCH 6.12/7 1/2] net: x", 1, 1, 2),
        ("[PATCH 6.12 v2 1/2] net: x", 2, 1, 2),
        ("[PATCH v6.12 1/2] net: x", 1, 1, 2),
        ("[PATCH ipv6 1/2] net: x", 1, 1, 2),
        ("[PATCH ipv4/ipv6] net: x", 1, None, None),
        ("[PATCH 2026/11/27 2/2] net: x", 1, 2, 2),
        ("[net] [PATCH v4 2/2] net: x", 4, 2, 2),
        ("[PATCH net-next v2 0/3] net: x", 2, 0, 3),
        ("[net-next,v2,1/3] net: x", 2, 1, 3),  # patchwork
        ("[net-next, v2, 1/3] net: x", 2, 1, 3),
        ("[PATCH RESEND] net: x", 1, None, None),
        ("[RESEND PATCH v4 2/5] net: x", 4, 2, 5),
        ("[PATCH v2 RESEND 1/2] net: x", 2, 1, 2),
        ("[PATCH v2-resend 1/2] net: x", 2, 1, 2),
        ("[RFC PATCH] net: x", 1, None, None),
        ("[PATCH/RFC v2 1/2] net: x", 2, 1, 2),
        ("[RFC net-next (TESTING) 1/2] net: x", 1, 1, 2),
        ("[PATCH stable 5.10] net: x", 1, None, None),
        ("[PATCH 5.10 001/300] net: x", 1, 1, 300),
        ("[PATCH 5.15.y 2/3] net: x", 1, 2, 3),
        ("[PATCH 10/2.6 1/2] net: x", 1, 1, 2),
        ("[patch V3 01/13] net: x", 3, 1, 13),
        ("[PATCH bpf-next,v4] net: x", 4, None, None),
        ("[PATCH v2 1/2 net-next] net: x", 2, 1, 2),
        ("[PATCH net-next 1/2 v2] net: x", 2, 1, 2),
        ("[PATCH net-nextv2 1/2] net: x", 2, 1, 2),
        ("[PATCH -next v2] net: x", 2, None, None),
        ("[PATCH v2][next] net: x", 2, None, None),
        ("[PATCH v3]: net: x", 3, None, None),
        ("[PATCH net 1/2][RESEND] net: x", 1, 1, 2),
        ("[PATCH 1 of 8] net: x", 1, 1, 8),  # Mercurial
        ("[PATCH v2 1 / 2] net: x", 2, 1, 2),
        ("[PATCH ver. 2 1/2] net: x", 2, 1, 2),
        ("[PATCH version 2 1/2] net: x", 2, 1, 2),
        ("[PATCH v.2 1/2] net: x", 2, 1, 2),
        ("[PATCH V 2 1/2] net: x", 2, 1, 2),
        ("[PATCH 1/2v2] net: x", 2, 1, 2),
        ("[PATCH 1/2-V3] net: x", 3, 1, 2),
        ("[PATCH v2/RFC 1/2] net: x", 2, 1, 2),
        ("[PATCH 1 OF 8] net: x", 1, 1, 8),
        ("[PATCH 3-of-7] net: x", 1, 3, 7),
        ("[PATCH TCPv4 1/2] net: x", 1, 1, 2),
        ("[PATCH 802.1q 1/2] net: x", 1, 1, 2),
        ("[PATCH net/ipv4 1/2] net: x", 1, 1, 2),
        ("[Intel-wired-lan] [PATCH net v2 1/2] net: x", 2, 1, 2),
        ("[PATCH] Re: net: x", 1, None, None),
    ],
)
def test_subjects_as_people_write_them(subject: str, version: int, number: int | None, total: int | None) -> None:
    found = read(subject)
    assert found.is_patch
    assert (found.version, found.number, found.total, found.title) == (version, number, total, "net: x")


@pytest.mark.parametrize(
    "subject",
    [
        "Re: [PATCH 1/2] net: x",
        "net: x",
        "[net] minutes of the meeting",
        "[GIT PULL] net-next",
        "RE: [PATCH v2] x",
        "[External] Re: [PATCH 1/2] net: x",
        "AW: [PATCH] x",
        "Antwort: [PATCH] x",
        "SV: [PATCH] x",
        "WG: [PATCH] x",
        "Re[2]: [PATCH] x",
        "回复: [PATCH] x",
        "回复\uff1a[PATCH] x",
        "Fwd: [PATCH] x",
        "RE : [PATCH 1/2] x",
    ],
)
def test_other_subjects_are_no_patches(subject: str) -> None:
    assert not read(subject).is_patch


def test_a_diff_with_a_request_is_a_patch_whatever_its_subject() -> None:
    assert read("net: x", f"perf: tcp\n---\n{DIFF}").is_patch


@pytest.mark.django_db
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_cover_letter_in_reply_to_an_old_series_begins_a_new_one(
    repository: Checkout, order: tuple[int, ...]
) -> None:
    """Although the sender has not raised the version."""
    two_commits(repository)
    old = posted(repository, 2)
    receive_all(old)
    root = re.search(rb"(?m)^Message-I[dD]: (<.*>)", old[1])
    assert root
    two_commits(repository, "better")
    new = posted(repository, 2, f"--in-reply-to={root[1].decode()}", asking="perf: tcp quick")
    receive_all([new[place] for place in order])
    assert [series.postings.count() for series in Series.objects.all()] == [3, 3]
    work()
    assert "better" in bytes(Submission.objects.get().patch).decode()


@pytest.mark.django_db
def test_an_old_version_that_comes_late_is_not_measured(repository: Checkout) -> None:
    two_commits(repository)
    one = posted(repository, 2, asking="perf: tcp quick")
    two_commits(repository, "fiver")
    receive_all(posted(repository, 2, "-v2", asking="perf: tcp quick"))
    work()
    receive_all(one)
    work()
    assert "“[PATCH v2 0/2] net: names” has come" in " ".join(str(sent.outbox[-1].body).split())
    assert Series.objects.get(version=1).state == SeriesState.OVER
    assert Submission.objects.get().state == SubmissionState.WAITING


def partly(version: list[bytes], name: str) -> list[bytes]:
    """A newer version that is not measured itself."""
    cover, one, two = version
    unasked = cover.replace(b"perf: tcp quick\n", b"")
    return {
        "one patch": [two],
        "one patch with a request": [two.replace(b"\n---\n", b"\nperf: tcp quick\n---\n", 1)],
        "the cover letter": [cover],
        "the cover letter and a patch": [cover, two],
        "no request": [unasked, one, two],
        "help": [cover.replace(b"tcp quick", b"help"), one, two],
        "an invalid request": [cover.replace(b"tcp quick", b"nonsense"), one, two],
        "two requests": [cover, one.replace(b"\n---\n", b"\nperf: udp\n---\n", 1), two],
    }[name]


PARTS = [
    "one patch", "one patch with a request", "the cover letter", "the cover letter and a patch", "no request", "help",
    "an invalid request", "two requests",
]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("early", [0, 2, 3])
@pytest.mark.parametrize("name", PARTS)
def test_a_newer_version_that_is_not_measured_stops_no_older_one(repository: Checkout, name: str, early: int) -> None:
    two_commits(repository)
    old = posted(repository, 2, asking="perf: tcp quick")
    root = re.search(rb"(?m)^Message-I[dD]: (<.*>)", old[0])
    assert root
    two_commits(repository, "fiver")
    new = posted(repository, 2, "-v2", f"--in-reply-to={root[1].decode()}", asking="perf: tcp quick")
    receive_all(old[:early])
    work()
    receive_all(partly(new, name))
    work()
    receive_all(old[early:])
    work()
    series = Series.objects.get(version=1)
    assert series.state == SeriesState.SUBMITTED
    assert series.submissions.get().state == SubmissionState.WAITING
    assert not any("has come" in str(letter.body) for letter in sent.outbox)


@pytest.mark.django_db
def test_a_newer_version_that_becomes_whole_takes_the_place_of_the_older_one(repository: Checkout) -> None:
    two_commits(repository)
    old = posted(repository, 2, asking="perf: tcp quick")
    two_commits(repository, "fiver")
    new = posted(repository, 2, "-v2", asking="perf: tcp quick")
    receive_all([*new[:2], *old])
    work()
    receive_all(new[2:])
    work()
    assert [one.state for one in Series.objects.order_by("version")] == [SeriesState.OVER, SeriesState.SUBMITTED]
    assert Submission.objects.filter(state=SubmissionState.WAITING).count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(("early", "known"), [(0, True), (3, True), (3, False)])
@pytest.mark.parametrize("why", ["conflict", "quota", "testbed"])
def test_a_newer_version_that_is_refused_stops_no_older_one(
    repository: Checkout, ada: User, settings: Settings, why: str, early: int, *, known: bool
) -> None:
    """Whether it comes after the older one was submitted, or together with it."""
    ada.role = Role.SUBMITTER
    ada.save()
    head = SIGNED if known else b""
    two_commits(repository)
    old = posted(repository, 2, asking="perf: tcp quick")
    two_commits(repository, "fiver")
    new = posted(repository, 2, "-v2", asking="perf: tcp quick")
    if why == "conflict":
        new = [mail.replace(b"-int line5;", b"-int other5;") for mail in new]
    if why == "testbed":
        new = [mail.replace(b"perf: tcp quick", b"perf: quick testbed=nowhere") for mail in new]
    receive_all([head + mail for mail in old[:early]])
    work()
    if why == "quota":
        settings.SUBMISSION_HOURS = 0.1
        new = [mail.replace(b"perf: tcp quick", b"perf: quick") for mail in new]
    receive_all([head + mail for mail in [*new, *old[early:]]])
    work()
    one, two = Series.objects.order_by("version")
    assert two.state == SeriesState.OVER
    assert (one.state, one.submissions.get().state) == (SeriesState.SUBMITTED, SubmissionState.WAITING)
    assert not any("has come" in str(letter.body) for letter in sent.outbox)


@pytest.mark.django_db
def test_a_newer_version_takes_the_place_of_the_older_one_in_the_quota(
    repository: Checkout, settings: Settings
) -> None:
    settings.OPEN_SUBMISSIONS = 1
    two_commits(repository)
    receive_all(posted(repository, 2, asking="perf: tcp quick"))
    work()
    two_commits(repository, "fiver")
    receive_all(posted(repository, 2, "-v2", asking="perf: tcp quick"))
    work()
    old, new = Submission.objects.order_by("number")
    assert (old.state, new.state) == (SubmissionState.CANCELLED, SubmissionState.WAITING)


@pytest.mark.django_db
def test_a_series_in_reply_to_a_newer_version_is_no_older_one(repository: Checkout) -> None:
    """Its sender has forgotten the number of the version."""
    two_commits(repository)
    newer = posted(repository, 2, "-v2", asking="perf: tcp quick")
    newer = [mail.replace(b".git.ada@", b".answered.ada@") for mail in newer]
    receive_all(newer)
    work()
    root = re.search(rb"(?m)^Message-I[dD]: (<.*>)", newer[0])
    assert root
    two_commits(repository, "fiver")
    receive_all(posted(repository, 2, f"--in-reply-to={root[1].decode()}", asking="perf: tcp quick"))
    work()
    assert [one.state for one in Series.objects.all()] == [SeriesState.SUBMITTED] * 2


@pytest.mark.parametrize(
    ("head", "sender", "reply_to"),
    [
        ("From: Ada <ada@example.org>\n", "ada@example.org", ("ada@example.org",)),
        ("From: ada@example.org (Ada)\n", "ada@example.org", ("ada@example.org",)),
        (
            "From: Ada <ada@example.org>\nReply-To: Bob <bob@example.net>, net@lists.example, perf@service.example\n",
            "ada@example.org",
            ("bob@example.net",),
        ),
        ("From: Ada <ada@example.org>\nReply-To: net@lists.example\n", "ada@example.org", ("ada@example.org",)),
        (  # b4's relay
            "From: Ada via B4 Relay <devnull+ada.example.org@kernel.example>\nReply-To: ada@example.org\n",
            "ada@example.org",
            ("ada@example.org",),
        ),
        (  # a list with its own address in From, because the author's domain has a DMARC policy
            "From: Ada via net <net@lists.example>\nReply-To: Ada <ada@example.org>\n",
            "ada@example.org",
            ("ada@example.org",),
        ),
    ],
)
def test_answers_go_where_the_author_reads_them(head: str, sender: str, reply_to: tuple[str, ...]) -> None:
    found = read("[PATCH] net: x", head=head)
    assert (found.sender, found.reply_to) == (sender, reply_to)


def test_the_signature_of_a_relay_does_not_prove_the_author() -> None:
    signed = "Authentication-Results: mx.service.example; dkim=pass header.d={domain} header.s=key\n"
    head = "From: Ada via x <x@lists.example>\nReply-To: ada@example.org\n"
    assert not read("[PATCH] net: x", head=signed.format(domain="lists.example") + head).proven
    assert not read("[PATCH] net: x", head=signed.format(domain="example.org") + head).proven
    plain = f"From: Ada <{SENDER}>\nReply-To: bob@example.net\n"
    assert read("[PATCH] net: x", head=signed.format(domain="example.org") + plain).proven


@pytest.mark.django_db
def test_many_senders_cannot_flood_an_address_in_reply_to() -> None:
    for number in range(ANSWERS_WITHOUT_ACCOUNT.most + 5):
        head = f"From: eve{number}@example.net\nReply-To: {SENDER}\nSubject: x\nMessage-ID: <{number}@example.net>\n"
        with suppress(IgnoredError):
            receive(f"{head}\nperf: help\n".encode(), "eve@example.net")
    work()
    assert len(sent.outbox) == ANSWERS_WITHOUT_ACCOUNT.most


@pytest.mark.django_db
def test_an_account_cannot_flood_an_address_in_reply_to(ada: User) -> None:
    for number in range(ANSWERS_WITHOUT_ACCOUNT.most + 5):
        head = f"From: {SENDER}\nReply-To: bob@example.net\nSubject: x\nMessage-ID: <{number}@example.net>\n"
        with suppress(IgnoredError):
            receive(SIGNED + f"{head}\nperf: help\n".encode())
    work()
    assert len(sent.outbox) == ANSWERS_WITHOUT_ACCOUNT.most


@pytest.mark.django_db
def test_the_answer_to_a_series_goes_to_its_reply_to(mails: list[bytes]) -> None:
    receive_all([with_header(mail, "Reply-To: bob@example.net") for mail in mails])
    assert work() == 1
    assert sent.outbox[-1].to == ["bob@example.net"]


@pytest.mark.parametrize(
    ("head", "author", "title"),
    [
        ("From: =?UTF-8?q?Rafa=C5=82?= <rafal@example.org>\n\n", "Rafał <rafal@example.org>", "net: x"),
        ("From: =?UTF-8?q?Rafa=C5=82?=\n <rafal@example.org>\n\n", "Rafał <rafal@example.org>", "net: x"),
        ("From: Rafał <rafal@example.org>\nSubject: [PATCH] net: y\n\n", "Rafał <rafal@example.org>", "net: y"),
        ("Date: Fri, 27 Nov 2026 10:00:00 +0000\n\n", f"Ada <{SENDER}>", "net: x"),
    ],
)
def test_author_and_title_in_the_text_are_those_of_the_patch(head: str, author: str, title: str) -> None:
    mail = f"From: Ada <{SENDER}>\nSubject: [PATCH] net: x\n\n{head}Because.\n---\n{DIFF}"
    (patch,) = read_series(mail.encode()).patches
    assert (patch.author, patch.subject, patch.message) == (author, title, "Because.")


def test_headers_in_bare_utf8_are_text() -> None:
    """git with format.encodeEmailHeaders=false."""
    mail = f"From: Rafał <rafal@example.org>\nSubject: [PATCH] net: größer\n ist schöner\n\n---\n{DIFF}"
    (patch,) = read_series(mail.encode()).patches
    assert (patch.author, patch.subject) == ("Rafał <rafal@example.org>", "net: größer ist schöner")


@pytest.mark.parametrize("signature", ["--signature=2.39", "--no-signature"])
def test_mails_of_one_text_are_distinguished_as_git_does(repository: Checkout, signature: str) -> None:
    two_commits(repository)
    text = repository.git("format-patch", "--stdout", signature, "HEAD~2")
    assert [patch.subject for patch in read_series(text).patches] == ["net: name five", "net: name thirty"]


@pytest.mark.parametrize("kind", ["application/pgp-signature", "application/pkcs7-signature"])
def test_a_signature_beside_the_text_is_no_patch(kind: str) -> None:
    signature = "\x00\x01binary" if "pkcs7" in kind else "-----BEGIN PGP SIGNATURE-----\n"
    body = f"--=\nContent-Type: text/plain\n\nperf: tcp\n---\n{DIFF}\n--=\nContent-Type: {kind}\n\n{signature}\n--=--\n"
    head = f'From: Ada <{SENDER}>\nContent-Type: multipart/signed; boundary="="\n'
    found = read("[PATCH] net: x", body, head)
    assert (found.problem, found.request) == ("", "tcp")
    assert b"SIGNATURE" not in found.mbox
