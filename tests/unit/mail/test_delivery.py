# SPDX-License-Identifier: BSD-2-Clause
"""Mails come in by LMTP and by a pipe, and responses go out by SMTP, in any state of the other side."""

import grp
import io
import os
import smtplib
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from perfweb.accounts.limits import Limit
from perfweb.accounts.models import Entry, Role, User
from perfweb.inputlimits import MAIL_BYTES
from perfweb.mail.lmtp import listen
from perfweb.mail.models import Address, Posting
from perfweb.mail.series import attend
from perfweb.outbox.models import Letter
from perfweb.outbox.services import LONGEST_PAUSE, deliver
from runners.services.supervisor import free_port
from tests.checkouts import Checkout
from tests.unit.mail.conftest import OWN, SENDER, intake, posted, receive_all, two_commits, work


class Server:
    """A mail server that stores mails, or refuses them."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.refusal = ""

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.refusal:
            return self.refusal
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content))
        return "250 OK"


@contextmanager
def serving(server: Server, settings: Settings, **options: Any) -> Iterator[None]:
    controller = Controller(server, "127.0.0.1", settings.EMAIL_PORT, **options)
    controller.start()
    try:
        yield
    finally:
        controller.stop()


@pytest.fixture
def smtp(settings: Settings) -> Settings:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port(30_025)
    return settings


@pytest.mark.django_db
def test_answer_is_sent_when_the_server_is_there_again(smtp: Settings, mails: list[bytes]) -> None:
    receive_all(mails)
    now, server = timezone.now() + timedelta(minutes=1), Server()
    attend()
    assert deliver(now) == 0
    assert "refused" in Letter.objects.get().problem
    with serving(server, smtp):
        server.refusal = "451 4.3.0 not now"
        assert deliver(now + LONGEST_PAUSE) == 0
        server.refusal = ""
        assert [deliver(now + 3 * LONGEST_PAUSE), deliver(now + 6 * LONGEST_PAUSE)] == [1, 0]
    reply = server.mails[0]
    assert (reply["To"], reply["From"], reply["Cc"]) == (SENDER, OWN, None)
    assert reply["In-Reply-To"] == Posting.objects.get(number=0).message_id
    assert (reply["Auto-Submitted"], reply["X-Perfweb"]) == ("auto-replied", "received")
    assert reply.get_content_type() == "text/plain"
    assert reply["Message-ID"] == Letter.objects.get().reference


@pytest.mark.django_db
def test_wrong_password_is_tried_less_and_less(smtp: Settings, mails: list[bytes]) -> None:
    """A mail server may block a client that repeats it."""
    receive_all(mails)
    attend()
    smtp.EMAIL_HOST_USER, smtp.EMAIL_HOST_PASSWORD = "perf", "wrong"

    def login(*_: object) -> AuthResult:
        return AuthResult(success=smtp.EMAIL_HOST_PASSWORD == "right", handled=False)

    server, clock = Server(), timezone.now() + timedelta(minutes=1)
    with serving(server, smtp, authenticator=login, auth_require_tls=False, auth_required=True):
        for _ in range(24 * 60):
            assert deliver(clock) == 0
            clock += timedelta(minutes=1)
        assert Letter.objects.get().attempts <= 24 + 6
        smtp.EMAIL_HOST_PASSWORD = "right"
        assert deliver(clock + LONGEST_PAUSE) == 1


@pytest.mark.django_db
def test_mail_that_the_server_never_takes_is_given_up(smtp: Settings, mails: list[bytes]) -> None:
    receive_all(mails)
    server = Server()
    server.refusal = "554 5.7.1 no"
    with serving(server, smtp):
        assert work() == 0
    given_up = Letter.objects.get()
    assert (given_up.due, given_up.sent, "5.7.1" in given_up.problem) == (None, None, True)


@pytest.mark.django_db(transaction=True)
def test_mail_is_taken_by_lmtp(mails: list[bytes]) -> None:
    port = free_port(30_024)
    server = listen(f"127.0.0.1:{port}")
    server.start()
    try:
        with smtplib.LMTP("127.0.0.1", port) as client:
            with pytest.raises(smtplib.SMTPRecipientsRefused):
                client.sendmail(SENDER, ["root@service.example"], mails[0])
            with pytest.raises(smtplib.SMTPException):
                client.sendmail(SENDER, [OWN], b"x" * (MAIL_BYTES + 1))
        with smtplib.LMTP("127.0.0.1", port) as client:
            for mail in mails:
                client.sendmail(SENDER, [OWN], mail)
            for path in ("", "<>"):  # a bounce: accepted and ignored
                client.sendmail(path, [OWN], mails[0].replace(b".git.ada@", b".bounce.ada@"))
            client.sendmail(SENDER, [OWN], b"nonsense")
    finally:
        server.stop()
    assert Posting.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_command_takes_mails_on_a_socket_until_it_is_ended(mails: list[bytes], tmp_path: Path) -> None:
    place, group = tmp_path / "s", grp.getgrgid(os.getgroups()[-1] if os.getgroups() else os.getgid()).gr_name
    place.touch()  # as a killed process leaves it
    with intake(place, group) as process:
        assert (stat.filemode(place.stat().st_mode), place.group()) == ("srw-rw----", group)
        with smtplib.LMTP(str(place)) as client:
            client.sendmail(SENDER, [OWN], mails[0])
        process.terminate()
        assert process.wait(30) == 0
    assert Posting.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_lmtp_returns_a_temporary_error_while_the_database_is_away(
    mails: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise OSError("away")

    port = free_port(30_024)
    monkeypatch.setattr("perfweb.mail.intake.read_message", away)
    server = listen(f"127.0.0.1:{port}")
    server.start()
    try:
        with smtplib.LMTP("127.0.0.1", port) as client, pytest.raises(smtplib.SMTPDataError) as caught:
            client.sendmail(SENDER, [OWN], mails[0])
    finally:
        server.stop()
    assert caught.value.smtp_code == 451


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:x", "127.0.0.1:70000", ":25"])
def test_address_that_is_none(address: str) -> None:
    with pytest.raises(ValueError, match="neither HOST:PORT"):
        listen(address)


@pytest.mark.django_db
def test_mail_is_taken_from_a_pipe(repository: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    two_commits(repository)
    mail = posted(repository, 1)[0]
    output = io.StringIO()
    for content in (mail, mail, b"nonsense"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        call_command("receive_mail", "--sender", SENDER, stdout=output)
    assert Posting.objects.get().title == "net: name thirty"
    assert [line.partition(" ")[0] for line in output.getvalue().splitlines()] == ["kept", "ignored:", "ignored:"]


@pytest.mark.django_db
def test_the_pipe_returns_a_temporary_error(mails: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfweb.mail.intake.FROM_ALL", Limit("mails", 0, 60))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(mails[0])))
    with pytest.raises(CommandError) as caught:
        call_command("receive_mail")
    assert caught.value.returncode == os.EX_TEMPFAIL


@pytest.mark.django_db
def test_addresses_of_accounts() -> None:
    User.objects.create(username="ada", role=Role.SUBMITTER)
    call_command("mail_address", "add", "Ada", "ADA@example.org")
    listed = io.StringIO()
    call_command("mail_address", "list", stdout=listed)
    assert listed.getvalue() == "ada@example.org: ada\n"
    for words in (["add", "ada", "ada@example.org"], ["add", "eve", "eve@example.org"], ["remove", "eve@example.org"]):
        with pytest.raises(CommandError):
            call_command("mail_address", *words)
    call_command("mail_address", "remove", "ada@example.org")
    assert not Address.objects.exists()
    assert Entry.objects.filter(subject="ada").count() == 2
