# SPDX-License-Identifier: BSD-2-Clause
"""Mails are fetched from a mailbox of Dovecot's, each once, whatever is interrupted in between."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DataError, OperationalError, connection
from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError
from pytest_django import Settings

from perfweb.accounts.limits import Limit, NotNowError
from perfweb.faults.models import Fault
from perfweb.inputlimits import MAIL_BYTES
from perfweb.mail import imap
from perfweb.mail.imap import Mailbox, follow, take_all
from perfweb.mail.intake import receive
from perfweb.mail.models import Posting
from tests.unit.mail.dovecot import Dovecot


@pytest.fixture(scope="module")
def started() -> Iterator[Dovecot]:
    """Below a short path, for sockets."""
    with tempfile.TemporaryDirectory(prefix="perfweb-") as folder:
        Path(folder).chmod(0o755)
        dovecot = Dovecot(Path(folder) / "dovecot")
        try:
            dovecot.start()
            yield dovecot
        finally:
            dovecot.stop()


@pytest.fixture
def server(started: Dovecot) -> Dovecot:
    started.empty()
    return started


def look(box: Mailbox) -> None:
    """One check of the folder."""
    with box.open() as client:
        take_all(client, box)


@pytest.mark.django_db
def test_what_nobody_has_seen_is_taken_once(server: Dovecot, mails: list[bytes]) -> None:
    server.put(*mails, b"nonsense", b"From: ada@example.org\r\n\r\n" + b"x" * MAIL_BYTES)
    look(server.box)
    assert Posting.objects.count() == 3
    assert (server.unseen(), server.seen()) == (0, 5)
    server.put(*mails)  # copies, as another transport may deliver them
    look(server.box)
    assert Posting.objects.count() == 3
    assert server.unseen() == 0


@pytest.mark.django_db
def test_what_was_taken_is_moved_where_that_is_wanted(server: Dovecot, mails: list[bytes]) -> None:
    server.put(*mails)
    look(replace(server.box, done="Taken"))
    assert (server.unseen(), server.seen(), server.seen("Taken")) == (0, 0, 3)
    server.put(mails[0])
    with pytest.raises(IMAPClientError):
        look(replace(server.box, done="no such folder"))
    assert (server.unseen(), server.seen()) == (0, 1)


@pytest.mark.django_db
def test_what_is_too_much_now_stays_until_later(
    server: Dovecot, mails: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.put(*mails)
    with monkeypatch.context() as patch:
        patch.setattr("perfweb.mail.intake.FROM_ALL", Limit("a mail", 1, 60))
        with pytest.raises(NotNowError):
            look(server.box)
    assert (Posting.objects.count(), server.unseen()) == (1, 2)
    look(server.box)
    assert (Posting.objects.count(), server.unseen()) == (3, 0)


@pytest.mark.django_db
def test_while_the_database_is_away_nothing_is_marked(
    server: Dovecot, mails: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("away")

    server.put(*mails)
    with monkeypatch.context() as patch:
        patch.setattr("perfweb.mail.intake._keep", away)
        with pytest.raises(OperationalError):
            look(server.box)
    assert server.unseen() == 3


@pytest.mark.django_db
def test_a_mail_that_was_stored_and_not_marked_is_not_stored_again(
    server: Dovecot, mails: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: Any, **__: Any) -> None:
        raise ConnectionResetError("cut")

    server.put(*mails)
    with monkeypatch.context() as patch:
        patch.setattr(IMAPClient, "add_flags", cut)
        with pytest.raises(ConnectionResetError):
            look(server.box)
    assert (Posting.objects.count(), server.unseen()) == (1, 3)
    look(server.box)
    assert (Posting.objects.count(), server.unseen()) == (3, 0)


@pytest.mark.django_db
@pytest.mark.parametrize("mistake", [RuntimeError, RecursionError, DataError])
def test_a_mail_that_we_make_a_mistake_about_does_not_keep_the_others(
    server: Dovecot, mails: list[bytes], monkeypatch: pytest.MonkeyPatch, mistake: type[Exception]
) -> None:
    def mistaken(content: bytes, taken: Callable[[bytes], str] = receive) -> str:
        if b"0/2" in content:
            raise mistake("planted")
        return taken(content)

    monkeypatch.setattr(imap, "receive", mistaken)
    server.put(*mails)
    look(server.box)
    assert (Posting.objects.count(), server.unseen()) == (2, 1)
    assert mistake.__name__ in Fault.objects.get(task="take a mail").error
    monkeypatch.undo()
    look(server.box)
    assert (Posting.objects.count(), server.unseen(), Fault.objects.count()) == (3, 0, 0)


@pytest.mark.django_db(transaction=True)
def test_it_goes_on_when_the_server_is_there_again(
    server: Dovecot, mails: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imap, "PERIOD", 0.1)
    monkeypatch.setattr(imap, "LONGEST_PAUSE", 0.2)
    ending = threading.Event()

    def work() -> None:
        follow(server.box, ending)
        connection.close()

    server.stop()
    worker = threading.Thread(target=work)
    worker.start()
    try:
        for mail in mails[:2]:
            server.start()
            before = Posting.objects.count()
            server.put(mail)
            while Posting.objects.count() == before:
                assert worker.is_alive()
                time.sleep(0.05)
            server.stop()
    finally:
        ending.set()
        worker.join(30)
        server.start()
    assert not worker.is_alive()
    assert Posting.objects.count() == 2


def test_only_a_server_that_proves_who_it_is_gets_the_password(server: Dovecot, tmp_path: Path) -> None:
    other = tmp_path / "password"
    other.write_text("another", encoding="ascii")
    wrong = {"authorities": None}, {"host": "localhost"}, {"password_file": str(other)}, {"folder": "none"}
    for change in wrong:
        with pytest.raises((OSError, IMAPClientError)):
            replace(server.box, **change).open()
    log = (server.folder / "log").read_text(encoding="utf-8")
    assert log.count("auth failed") == 1


@pytest.mark.parametrize("name", ["MAIL_ADDRESS", "IMAP_HOST", "IMAP_USER", "IMAP_PASSWORD_FILE"])
def test_the_command_reports_what_is_missing(settings: Settings, name: str) -> None:
    for each in ("IMAP_HOST", "IMAP_USER", "IMAP_PASSWORD_FILE"):
        setattr(settings, each, "given")
    setattr(settings, name, "")
    with pytest.raises(CommandError, match=f"PERFWEB_{name} is not set: give it"):
        call_command("mail_fetch")
