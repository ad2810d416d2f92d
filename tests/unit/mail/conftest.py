# SPDX-License-Identifier: BSD-2-Clause
"""Series of patches as git posts them, and an installation that accepts mail."""

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from perfweb.accounts.models import Role, User
from perfweb.mail.intake import receive
from perfweb.mail.models import Address, Series
from perfweb.mail.series import attend
from perfweb.outbox.services import deliver
from tests.checkouts import Checkout
from tests.unit.submissions.conftest import nothing_counted, repository  # noqa: F401

OWN = "perf@service.example"
SENDER = "ada@example.org"
SERVER = "mx.service.example"
SIGNED = f"Authentication-Results: {SERVER}; dkim=pass header.d=example.org header.s=key\n".encode()


_SECONDS = itertools.count(1_800_000_000)


@pytest.fixture(autouse=True)
def set_up(settings: Settings) -> None:
    settings.MAIL_ADDRESS = OWN
    settings.MAIL_AUTHSERV_ID = SERVER
    settings.MAIL_LISTS = {"net.lists.example": "net@lists.example"}


@pytest.fixture
def ada(db: None) -> User:
    """A maintainer whose address is linked to the account."""
    user = User.objects.create(username="ada", role=Role.MAINTAINER)
    Address.objects.create(user=user, address=SENDER)
    return user


@pytest.fixture
def mails(repository: Checkout) -> list[bytes]:  # noqa: F811
    """A cover letter with a request, and two patches."""
    two_commits(repository)
    return posted(repository, 2, asking="perf: tcp quick")


def two_commits(checkout: Checkout, name: str = "five") -> None:
    checkout.edit("stack/net/if.c", lambda text: text.replace("line5;", f"{name};"))
    checkout.commit("net: name five")
    checkout.edit("stack/net/if.c", lambda text: text.replace("line30;", "thirty;"))
    checkout.commit("net: name thirty")


def posted(checkout: Checkout, patches: int, *words: str, asking: str = "") -> list[bytes]:
    """The newest commits as git's mails; the commits are then removed."""
    folder = checkout.tree.parent / "posted"
    cover = ["--cover-letter"] if patches > 1 else []
    options = ["--thread", f"--base=HEAD~{patches}", *cover, *words, f"HEAD~{patches}"]
    names = checkout.git("format-patch", "-o", str(folder), *options).decode().split()
    checkout.git("reset", "-q", "--hard", f"HEAD~{patches}")
    made = [re.sub(rb"^From [^\n]*\n", b"", Path(name).read_bytes()) for name in names]
    # git derives them from the second, and tests post more than once in one second.
    second = f".{next(_SECONDS)}.git".encode()
    made = [re.sub(rb"\.\d{10}\.git", second, mail) for mail in made]
    made[0] = made[0].replace(b"*** SUBJECT HERE ***", b"net: names").replace(b"*** BLURB HERE ***", b"BLURB")
    made[0] = made[0].replace(b"BLURB", asking.encode()) if patches > 1 else made[0]
    return made


def receive_all(mails: Sequence[bytes]) -> list[Series]:
    """Store mails; return the series that they made."""
    for mail in mails:
        receive(mail)
    return list(Series.objects.all())


def with_header(mail: bytes, *lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode() + mail


def work() -> int:
    """Do the messenger's periodic steps; return how many responses were sent."""
    attend()
    return deliver()


@contextmanager
def intake(place: Path, group: str) -> Iterator[subprocess.Popen[bytes]]:
    """The service's LMTP server on a socket that a group may use."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "perfweb.settings.test",
        "PERFWEB_PGDATABASE": connection.settings_dict["NAME"],
        "PERFWEB_MAIL_ADDRESS": OWN,
        "PERFWEB_MAIL_SOCKET_GROUP": group,
    }
    # One check needs collected static files.
    command = [sys.executable, "manage.py", "mail_intake", "--skip-checks", "--listen", str(place)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[3], env=environment, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"taking mails")
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
