# SPDX-License-Identifier: BSD-2-Clause
"""Users who submit patches of a small repository."""

from pathlib import Path

import pytest
from pytest_django import Settings

from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Means, Role, User
from perfweb.builds.models import Mirror
from perfweb.submissions.services import SubmissionRequest
from tests.checkouts import Checkout
from tests.factories import create_testbed
from tests.unit.accounts.conftest import forget_limits

WANTED = SubmissionRequest(testbed="demo", matrix="tcp-quick", knobs="net.isr.dispatch=direct")


def person(name: str, role: Role = Role.SUBMITTER) -> Actor:
    user, _ = User.objects.get_or_create(username=name, defaults={"role": role})
    return Actor(user.username, user.role, Means.PAGE, user=user)


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    """Let every test begin with unused limits."""
    forget_limits()


@pytest.fixture
def repository(checkout: Checkout, settings: Settings, tmp_path: Path, db: None) -> Checkout:
    settings.PATCH_REPOSITORY = checkout.tree
    settings.PERFWEB_VAR = tmp_path / "var"
    create_testbed()
    return checkout


@pytest.fixture
def author(repository: Checkout) -> Actor:
    return person("author")


@pytest.fixture
def maintainer(repository: Checkout) -> Actor:
    return person("maintainer", Role.MAINTAINER)


@pytest.fixture
def diff(repository: Checkout) -> bytes:
    return five(repository)


@pytest.fixture
def topic(repository: Checkout) -> str:
    """A branch of a registered repository with two commits that main does not have, while main has moved on; return
    its name.
    """
    repository.git("checkout", "-q", "-b", "topic/five")
    for old, new in (("line5;", "five;"), ("line30;", "thirty;")):
        repository.put("stack/net/if.c", (repository.tree / "stack/net/if.c").read_text().replace(old, new))
        repository.commit(f"net: name {new}")
    repository.git("update-ref", "refs/pull/7/head", "HEAD")
    repository.git("checkout", "-q", "main")
    repository.put("stack/other.c", "int other;\n")
    repository.commit("meanwhile")
    Mirror.objects.create(name="theirs", url=str(repository.tree))
    return "topic/five"


def five(checkout: Checkout, name: str = "five") -> bytes:
    """A diff that changes the fifth line."""
    checkout.edit("stack/net/if.c", lambda text: text.replace("line5;", f"{name};"))
    return checkout.diff()
