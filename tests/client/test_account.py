# SPDX-License-Identifier: BSD-2-Clause
"""perfctl with an account: the token is stored safely, and is sent to its own server only."""

from __future__ import annotations

import io
import json
import stat
from pathlib import Path

import pytest
from perfctl import tokens
from perfctl.commands import run_command

from perfweb.accounts.models import Role, Scope, User
from perfweb.accounts.tokens import issue
from perfweb.runs.models import Run
from perfweb.runs.summaries import summarise
from perfweb.tracking.models import Alert, AlertState, TrackedBranch
from tests.factories import START, create_queued_run, create_run, create_submission, create_testbed


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PERFCTL_TOKEN", raising=False)


def secret_of(role: Role) -> str:
    return issue(User.objects.create_user(role.label, role=role), "laptop", Scope.MAINTAIN, 1)[1]


def test_a_token_is_kept_and_cancels_a_run(
    asgi_server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, site = create_queued_run(), ["--server", asgi_server]
    assert run_command([*site, "cancel", str(run.pk)]) == 2
    assert "perfctl login" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("perfweb_wrong\n"))
    assert run_command([*site, "login"]) == 2
    assert "not known" in capsys.readouterr().err
    assert not tokens.path().exists()
    monkeypatch.setattr("sys.stdin", io.StringIO(secret_of(Role.MAINTAINER) + "\n"))
    assert run_command([*site, "login"]) == 0
    assert stat.S_IMODE(tokens.path().stat().st_mode) == 0o600
    assert run_command([*site, "account"]) == 0
    assert "maintainer, maintainer; token laptop (maintain)" in capsys.readouterr().out
    assert run_command([*site, "cancel", str(run.pk)]) == 0
    assert capsys.readouterr().out == f"run {run.pk} is cancelled\n"
    assert Run.objects.get().reason == "cancelled by maintainer"
    monkeypatch.setenv("PERFCTL_TOKEN", secret_of(Role.READER))
    assert run_command([*site, "account", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "reader"
    assert run_command([*site, "cancel", str(run.pk)]) == 2
    assert "needs the role submitter" in capsys.readouterr().err


def test_a_maintainer_takes_a_testbed_out_and_sees_the_queue(
    asgi_server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, site = create_queued_run(), ["--server", asgi_server]
    monkeypatch.setenv("PERFCTL_TOKEN", secret_of(Role.MAINTAINER))
    assert run_command([*site, "maintain", "demo", "new cables"]) == 0
    assert capsys.readouterr().out == "testbed demo is out of service: maintenance\n"
    assert run_command([*site, "maintain", "demo", "again"]) == 2
    assert "new cables already" in capsys.readouterr().err
    assert run_command([*site, "queue", "--testbed", "demo"]) == 0
    output = capsys.readouterr().out.splitlines()[-1].split()
    assert (output[0], output[-1]) == (str(run.pk), "unknown")
    assert run_command([*site, "back", "demo"]) == 0
    assert capsys.readouterr().out == "testbed demo is back in service: maintenance\n"


def test_a_file_that_others_can_read_is_not_used() -> None:
    tokens.keep("https://perf.example.org", "secret")
    assert tokens.find("https://perf.example.org") == "secret"
    assert tokens.find("https://elsewhere.example.org") == ""
    tokens.path().chmod(0o644)
    with pytest.raises(tokens.TokenError, match="chmod 600"):
        tokens.find("https://perf.example.org")
    tokens.path().chmod(0o600)
    tokens.path().write_text("nonsense")
    with pytest.raises(tokens.TokenError, match="damaged"):
        tokens.find("https://perf.example.org")


@pytest.mark.parametrize("address", ["http://127.0.0.1:8000", "http://[::1]", "http://localhost", "https://a.example"])
def test_a_token_is_sent_where_nobody_listens(address: str) -> None:
    tokens.check_encrypted(address)


def test_a_token_is_not_sent_in_the_clear() -> None:
    with pytest.raises(tokens.TokenError, match="use https"):
        tokens.check_encrypted("http://perf.example.org")


def test_a_patch_is_submitted(
    asgi_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    create_testbed()
    monkeypatch.setenv("PERFCTL_TOKEN", secret_of(Role.SUBMITTER))
    patch, site = tmp_path / "a.diff", ["--server", asgi_server]
    patch.write_text("no diff\n")
    assert run_command([*site, "submit", str(patch)]) == 2
    assert "This has no diff" in capsys.readouterr().err
    assert run_command([*site, "submit", str(patch), "--ref", "main"]) == run_command([*site, "submit"]) == 2
    assert "one of them" in capsys.readouterr().err
    assert run_command([*site, "submit", "--ref", "main", "--repository", "nobody"]) == 2
    assert "There is no repository “nobody”" in capsys.readouterr().err
    submission = create_submission(reason="a hunk")
    run = create_run()
    summarise([run.pk])
    submission.runs.add(run)
    assert run_command([*site, "submission", str(submission.pk)]) == 0
    assert capsys.readouterr().out == (
        f"submission {submission.pk} is waiting: run {run.pk} is done\n    a hunk\n"
        f"run {run.pk}: direct against deferred: 6 faster\n    every test: perfctl compare {run.pk}\n"
        f"{asgi_server}/submissions/{submission.pk}/\n"
    )


def test_a_maintainer_decides_about_a_patch(
    asgi_server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number, site = str(create_submission().pk), ["--server", asgi_server]
    monkeypatch.setenv("PERFCTL_TOKEN", secret_of(Role.MAINTAINER))
    assert run_command([*site, "rerun", number, "--boots", "9"]) == 2
    assert "only approved submissions are measured" in capsys.readouterr().err
    assert run_command([*site, "refuse", number, "reads keys"]) == 0
    assert f"submission {number} is refused\n    reads keys\n" in capsys.readouterr().out
    assert run_command([*site, "approve", number]) == 2
    assert "is refused and cannot become approved" in capsys.readouterr().err
    withdrawn = str(create_submission().pk)
    assert run_command([*site, "withdraw", withdrawn]) == 0
    assert f"submission {withdrawn} is cancelled\n" in capsys.readouterr().out
    assert run_command([*site, "withdraw", withdrawn]) == 2
    assert "is cancelled" in capsys.readouterr().err


def test_alerts_are_read_and_judged(
    asgi_server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    branch = TrackedBranch.objects.create(name="head", testbed=create_testbed(), since="a" * 40)
    first, second = (
        branch.commits.create(position=place, sha=f"{place}" * 40, subject="net: x", author="ada", committed=START)
        for place in (1, 2)
    )
    made = Alert.objects.create(branch=branch, state=AlertState.CONFIRMED, since=first, until=second)
    made.movements.create(
        variant="direct", test="tcp.rr", better=False, suspected=-7, percent=-6.9, low=-9.1, high=-4.7, confirmed=True
    )
    site = ["--server", asgi_server]
    monkeypatch.setenv("PERFCTL_TOKEN", secret_of(Role.SUBMITTER))
    assert run_command([*site, "alerts", "--state", "confirmed"]) == 0
    output = capsys.readouterr().out.splitlines()[-1]
    assert output.split()[:3] == [str(made.number), "confirmed", "head"]
    assert "after 1111111111, with 2222222222 or before" in output
    assert "tcp.rr on direct -6.90 % (-9.10 to -4.70)" in output
    assert (
        run_command(
            [*site, "update-alert", str(made.number), "a cache", "--state", "acknowledged", "--owner", "submitter"]
        )
        == 0
    )
    output = capsys.readouterr().out
    assert "is acknowledged" in output
    assert "owner: submitter" in output
    assert "acknowledged: a cache" in output
    assert output.endswith(f"/alerts/{made.number}/\n")
    assert run_command([*site, "say", str(made.number)]) == 2
    assert "Nothing to save" in capsys.readouterr().err
    assert run_command([*site, "alert", "999"]) == 2
    assert "there is no alert 999" in capsys.readouterr().err
    assert run_command([*site, "alerts", "--branch", "nobody", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
