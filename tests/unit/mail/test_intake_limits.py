# SPDX-License-Identifier: BSD-2-Clause
"""A forged From does not use up the limit of its owner: only proven mail counts for its sender."""

import pytest

from perfweb.accounts.limits import Limit, NotNowError
from perfweb.accounts.models import User
from perfweb.mail import intake
from perfweb.mail.intake import receive
from perfweb.mail.models import Posting
from tests.unit.mail.conftest import SIGNED

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two mails from an address, three of a kind."""
    monkeypatch.setattr(intake, "FROM_ADDRESS", Limit("mails from an address", 2, 3600))
    monkeypatch.setattr(intake, "FROM_ALL", Limit("mails", 3, 3600))


def put_off(mails: list[bytes], envelope: str = "") -> int:
    """The number of mails that are deferred."""
    late = 0
    for mail in mails:
        try:
            receive(mail, envelope or "list@example.net")
        except NotNowError:
            late += 1
    return late


def numbered(mail: bytes, count: int, first: int = 0) -> list[bytes]:
    """Copies of a mail with different Message-IDs."""
    return [mail.replace(b"Message-Id: <", b"Message-Id: <%d." % number) for number in range(first, first + count)]


def test_forged_sender_does_not_keep_the_real_one_out(mails: list[bytes], ada: User) -> None:
    forged = numbered(mails[1], 20)
    assert sum(put_off([mail], f"{place}@evil.example") for place, mail in enumerate(forged)) == 17
    assert put_off([SIGNED + mail for mail in mails[:2]]) == 0
    assert Posting.objects.filter(series__user=ada).count() == 2


def test_forged_sender_does_not_keep_a_proven_untrusted_sender_out(mails: list[bytes]) -> None:
    assert put_off(numbered(mails[1], 9)) == 7
    assert put_off([SIGNED + mails[0], SIGNED + mails[1]]) == 0


def test_owner_of_a_domain_does_not_keep_an_account_out(mails: list[bytes], ada: User) -> None:
    signed = SIGNED.replace(b"example.org", b"evil.example") + mails[1].replace(b"ada@example.org", b"eve@evil.example")
    proven = [mail.replace(b"eve@", b"eve%d@" % place) for place, mail in enumerate(numbered(signed, 9))]
    assert put_off(proven) == 6
    assert put_off([SIGNED + mails[0]]) == 0


def test_account_has_a_limit_too(mails: list[bytes], ada: User) -> None:
    assert put_off([SIGNED + mail for mail in numbered(mails[1], 5)]) == 3


def test_envelope_of_what_nothing_proves_has_a_limit(mails: list[bytes]) -> None:
    assert put_off(numbered(mails[1], 3), "one@example.net") == 1
    assert put_off(numbered(mails[1], 1, first=5), "two@example.net") == 0
