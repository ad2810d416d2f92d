# SPDX-License-Identifier: BSD-2-Clause
"""A server whose repository the tests change, and a clone of that."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from perfweb.accounts.models import Role, Scope, User
from perfweb.accounts.tokens import issue
from tests.checkouts import Checkout, small_checkout
from tests.factories import create_testbed
from tests.servers import served


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A clone of the server's repository, which is the current directory."""
    (tmp_path / "server").mkdir()
    small_checkout(tmp_path / "server")
    subprocess.run(["git", "clone", "-q", "server", "clone"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path / "clone")
    return Checkout(tmp_path / "clone")


@pytest.fixture
def site(transactional_db: None, clone: Checkout, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The options for a server with that repository, whose testbed is `demo`, and the token of a submitter."""
    create_testbed()
    user = User.objects.create_user("ada", role=Role.SUBMITTER)
    monkeypatch.setenv("PERFCTL_TOKEN", issue(user, "laptop", Scope.SUBMIT, 1)[1])
    name = connection.settings_dict["NAME"]
    with served(name, PERFWEB_REPOSITORY=str(clone.tree.parent / "server")) as address:
        yield ["--server", address]
