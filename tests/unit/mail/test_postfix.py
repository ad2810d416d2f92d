# SPDX-License-Identifier: BSD-2-Clause
"""Postfix delivers mails as in docs/howto/mail.md, by LMTP and by a pipe, and bounces make no answers."""

import io
import os
import smtplib
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from perfweb.accounts.limits import Limit
from perfweb.mail.models import Posting
from perfweb.outbox.models import Letter
from perfweb.outbox.services import deliver, post
from tests.unit.mail.conftest import OWN, SENDER, intake
from tests.unit.mail.postfix import Postfix

DENIED = "Permission denied"
GONE = "gone@example.org"
LMTP = "lmtp      unix  -       -       n       -       -       lmtp"
"""The last such line in master.cf counts; Debian's has a chroot, in which no socket outside of it exists."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for sockets, that other users can pass."""
    with tempfile.TemporaryDirectory(prefix="perfweb-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@contextmanager
def postfix(folder: Path, transport: str, *services: str) -> Iterator[Postfix]:
    (folder / "postfix").mkdir(mode=0o755)
    server = Postfix(folder / "postfix", OWN, transport, *services)
    with ExitStack() as at_end:
        at_end.callback(server.remove)
        server.start()
        at_end.callback(server.stop)
        yield server


def bounce(server: Postfix, settings: Settings) -> None:
    """Send an answer of the service to a user who does not exist, which Postfix finds out after it has accepted it."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
    content = {"occasion": "request", "to": [GONE], "cc": [], "subject": "Re: x", "text": "perf: help\n"}
    post("mail:smtp", "request.1", {**content, "in_reply_to": "<1@example.org>", "references": "<1@example.org>"})
    assert deliver() == 1


def send(server: Postfix, mail: bytes) -> None:
    with smtplib.SMTP("127.0.0.1", server.port) as client:
        client.sendmail(SENDER, [OWN], mail)


@pytest.mark.django_db(transaction=True)
def test_lmtp_through_a_socket_that_a_group_may_use(folder: Path, mails: list[bytes], settings: Settings) -> None:
    place = folder / "s"
    with postfix(folder, f"lmtp:unix:{place}", LMTP) as server:
        with intake(place, ""):
            send(server, mails[0])
            server.wait_for(f"to=<{OWN}>.*status=deferred.*{DENIED}")
        assert Posting.objects.count() == 0
        with intake(place, "postfix"):
            server.wait_for(f"to=<{OWN}>.*status=sent")  # what waited, after a restart of the service
            for mail in mails[1:]:
                send(server, mail)
            server.wait_for(f"to=<{OWN}>.*status=sent", 3)
            assert Posting.objects.count() == 3
            bounce(server, settings)
            server.wait_for("from=<>.*nrcpt=1")
            server.wait_for(f"to=<{OWN}>.*status=sent .*nothing is done about it")
    assert (Posting.objects.count(), Letter.objects.count()) == (3, 1)


@pytest.mark.django_db(transaction=True)
def test_debians_lmtp_sees_no_socket_outside_of_its_chroot(folder: Path, mails: list[bytes]) -> None:
    place = folder / "s"
    with postfix(folder, f"lmtp:unix:{place}") as server, intake(place, "postfix"):
        send(server, mails[0])
        server.wait_for(f"to=<{OWN}>.*status=deferred.*No such file")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("words", "null"), [("", "MAILER-DAEMON"), ("null_sender=", "")])
def test_pipe_keeps_a_mail_until_it_is_stored_and_names_the_null_sender(
    folder: Path, mails: list[bytes], settings: Settings, monkeypatch: pytest.MonkeyPatch, words: str, null: str
) -> None:
    """The pipe stores what it gets, so that the command runs here, as a user of the database."""
    out, script = folder / "out", folder / "receive"
    out.mkdir()
    out.chmod(0o777)
    script.write_text(f'#!/bin/sh\ncat >{out}/mail\nprintf %s "$1" >{out}/sender\nexit "$(cat {folder}/status)"\n')
    script.chmod(0o755)
    status = folder / "status"
    status.write_text(f"{os.EX_TEMPFAIL}")
    service = f"perfweb unix - n n - - pipe\n  user=nobody {words} argv={script} ${{sender}}"
    with postfix(folder, "perfweb:", service) as server:
        send(server, mails[0])
        server.wait_for(f"to=<{OWN}>, relay=perfweb.*status=deferred")
        with monkeypatch.context() as patch:
            patch.setattr("perfweb.mail.intake.FROM_ALL", Limit("mails", 0, 60))
            with pytest.raises(CommandError) as caught:
                received(out, monkeypatch)
        assert caught.value.returncode == os.EX_TEMPFAIL
        status.write_text("0")
        server.wait_for(f"to=<{OWN}>, relay=perfweb.*status=sent")
        assert (out / "sender").read_text() == SENDER
        assert received(out, monkeypatch).startswith("kept ")
        bounce(server, settings)
        server.wait_for(f"to=<{OWN}>, relay=perfweb.*status=sent", 2)
        assert (out / "sender").read_text() == null
        assert received(out, monkeypatch).startswith("ignored: it has no sender")
    assert (Posting.objects.count(), Letter.objects.count()) == (1, 1)


def received(out: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the command prints about the mail that the pipe got."""
    printed: Any = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((out / "mail").read_bytes())))
    call_command("receive_mail", "--sender", (out / "sender").read_text(), stdout=printed)
    return str(printed.getvalue())
