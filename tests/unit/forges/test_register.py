# SPDX-License-Identifier: BSD-2-Clause
"""Registering a repository, and its project on a forge."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from perfweb.accounts.models import Role, User
from perfweb.builds import mirrors
from perfweb.builds.kinds import LINUX
from perfweb.builds.models import Mirror
from perfweb.forges import secrets
from perfweb.forges.models import Member, Project
from perfweb.outbox.secretfiles import SecretError
from tests.checkouts import Checkout
from tests.factories import create_testbed
from tests.unit.forges.peer import TOKEN, Peer

pytestmark = pytest.mark.django_db
FORGE = {"forge": "gitea", "project": "net/stack", "api": "https://gitea.example.org/api/v1", "login": "perf-bot"}


@pytest.fixture
def options(checkout: Checkout, settings: Settings, tmp_path: Path) -> dict[str, Any]:
    settings.PERFWEB_VAR = tmp_path / "var"
    settings.FORGE_SECRETS = tmp_path / "secrets"
    create_testbed()
    User.objects.create(username="strangers", role=Role.SUBMITTER)
    User.objects.create(username="maria", role=Role.MAINTAINER)
    return {"url": str(checkout.tree), **FORGE, "account": "strangers"}


def test_a_repository_alone(options: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    call_command("register_repository", "demo", url=options["url"])
    assert mirrors.opened(Mirror.objects.get()).commit("main").sha
    assert capsys.readouterr().out.startswith("repository demo: main is ")


def test_a_repository_keeps_its_kind(options: dict[str, Any]) -> None:
    call_command("register_repository", "linux", url=options["url"], kind="linux")
    assert mirrors.opened(Mirror.objects.get()).kind is LINUX
    with pytest.raises(CommandError, match="linux is of kind linux: register another kind with another name"):
        call_command("register_repository", "linux", url=options["url"], kind="stack")
    call_command("register_repository", "linux", url=options["url"])
    assert mirrors.opened(Mirror.objects.get()).kind is LINUX


def test_a_project_with_its_people_and_secrets(options: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    call_command("register_repository", "demo", **options, allow=["maria-on-gitea=maria", "x=strangers"])
    project = Project.objects.get()
    output = capsys.readouterr().out
    assert "/forges/demo/webhook" in output
    assert str(secrets.token_file(project)) in output
    secret = secrets.webhook_secret(project)
    assert secret not in output
    assert secrets.secret_file(project).stat().st_mode & 0o777 == 0o600
    with pytest.raises(SecretError, match=r"demo\.token has to hold at least 20 characters"):
        secrets.token(project)

    call_command("register_repository", "demo", **{**options, "login": "other-bot"}, allow=["X="])
    project.refresh_from_db()
    assert (project.login, secrets.webhook_secret(project)) == ("other-bot", secret)
    assert [(one.login, one.user.username) for one in Member.objects.all()] == [("maria-on-gitea", "maria")]


def test_the_token_is_checked_when_there_is_one(options: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    peer = Peer("gitea")
    try:
        call_command("register_repository", "demo", **{**options, "api": peer.url})
        assert "then check it: manage.py retry_bot demo" in capsys.readouterr().out
        secrets.token_file(Project.objects.get()).write_text(TOKEN)
        call_command("register_repository", "demo", **{**options, "api": peer.url})
        assert "perf-bot may write to net/stack" in capsys.readouterr().out
        peer.permissions = {"push": False}
        with pytest.raises(CommandError, match="demo is registered, but its bot cannot work: perf-bot may not write"):
            call_command("register_repository", "demo", **{**options, "api": peer.url})
    finally:
        peer.stop()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"url": "ext::sh"}, "cannot be fetched: give an address with https://"),
        ({"url": "/nowhere"}, "cannot be fetched"),
        ({"branch": "none"}, "no commit “none”"),
        ({"login": None, "api": None}, "--forge needs --api, --login, too"),
        ({"api": "http://example.org"}, "no address with https://"),
        ({"account": "nobody"}, "there is no account 'nobody'"),
        ({"testbed": "none"}, "there is no testbed 'none'"),
        ({"allow": ["x"]}, "--allow LOGIN=ACCOUNT"),
    ],
)
def test_mistakes(options: dict[str, Any], changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        call_command("register_repository", "demo", **{**options, **changed})


def test_a_name_that_is_no_name(options: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match="slug"):
        call_command("register_repository", "../demo", url=options["url"])
