# SPDX-License-Identifier: BSD-2-Clause
"""`mail_try` prints the answers that a real delivery makes, and keeps nothing."""

import io
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import CommandError, call_command

from perfweb.accounts.models import User
from perfweb.builds.services import source_store
from perfweb.mail.intake import FROM_ADDRESS
from perfweb.mail.models import Series
from perfweb.mail.trial import mails_of
from perfweb.outbox.models import Letter
from tests.checkouts import Checkout
from tests.unit.mail.conftest import SENDER, SIGNED, posted, receive_all, two_commits, work

pytestmark = pytest.mark.django_db
SEPARATOR = b"From ada@example.org Sat Nov 28 12:00:00 2026\n"


def rows() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models()}


def trial(folder: Path, *mails: bytes, separator: bytes = SEPARATOR) -> str:
    """What the command prints; nothing may be stored by it."""
    file, output = folder / "box", io.StringIO()
    file.write_bytes(b"\n".join(separator + mail for mail in mails))
    before, content = rows(), file.read_bytes()
    call_command("mail_try", str(file), stdout=output)
    assert (rows(), file.read_bytes()) == (before, content)
    return output.getvalue()


def sources() -> list[str]:
    return sorted(path.name for path in source_store().glob("*"))


def test_the_answer_is_that_of_a_delivery(mails: list[bytes], ada: User, tmp_path: Path) -> None:
    signed = [SIGNED + mail for mail in mails]
    stored, store = sources(), settings.SOURCE_STORE
    counted = FROM_ADDRESS.count(f"account {ada.pk}")[0]
    printed = trial(tmp_path, *signed)
    assert FROM_ADDRESS.count(f"account {ada.pk}")[0] == counted + 1
    assert (sources(), settings.SOURCE_STORE) == (stored, store)
    assert "mail 3 of 3: kept " in printed
    receive_all(signed)
    work()
    [letter] = Letter.objects.all()
    first = letter.content["text"].partition("\n")[0]
    assert f"answer to {SENDER}\nSubject: {letter.content['subject']}\n\n{first}" in printed
    assert "The sender is not verified" not in printed


def test_it_answers_for_mails_without_an_account_and_after_real_ones(
    mails: list[bytes], repository: Checkout, tmp_path: Path
) -> None:
    receive_all(mails)
    two_commits(repository, "six")
    printed = trial(tmp_path, posted(repository, 1)[0].replace(b"---\n", b"perf: tcp quick\n---\n", 1))
    assert "The sender is not verified" in printed
    assert printed.count("answer to") == 1
    assert not Series.objects.get().submissions.exists()


def test_it_reports_a_missing_patch(mails: list[bytes], tmp_path: Path) -> None:
    assert "Patch 2 of this series of 2 has not arrived." in trial(tmp_path, *mails[:2])


@pytest.mark.parametrize("separator", [b"", SEPARATOR])
def test_mails_without_answer_have_the_reason(tmp_path: Path, separator: bytes) -> None:
    bounce = b"From: ada@example.org\nReturn-Path: <>\nMessage-ID: <1@example.org>\n\nperf: help\n"
    printed = trial(tmp_path, bounce, separator=separator)
    assert "mail 1 of 1: ignored: it has no sender" in printed
    assert printed.endswith("no answer\n")
    assert "ignored: " in trial(tmp_path, b"nonsense")


@pytest.mark.parametrize("line", [b"From now on the lock is taken once.\n", b"From ada@example.org\n", b">From x\n"])
@pytest.mark.parametrize(("separator", "number"), [(b"", 1), (SEPARATOR, 2)])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_a_line_of_a_text_begins_no_mail(
    tmp_path: Path, line: bytes, separator: bytes, number: int, ends: bytes
) -> None:
    """git-format-patch(1) does not quote it."""
    file, mail = tmp_path / "box", b"From: ada@example.org\nSubject: [PATCH] net: lock once\n\n" + line + b"More.\n\n"
    file.write_bytes((separator + mail).replace(b"\n", ends) * number)
    assert mails_of(file) == [separator + mail] * number


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot read .*: No such file"):
        call_command("mail_try", str(tmp_path / "none"))
