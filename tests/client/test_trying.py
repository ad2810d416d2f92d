# SPDX-License-Identifier: BSD-2-Clause
"""`perfctl try`, in a clone of the server's repository."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connections
from perfctl.commands import run_command

from perfweb.runs.summaries import summarise
from perfweb.submissions.models import Submission, SubmissionState
from tests.checkouts import Checkout
from tests.factories import create_run

LIMIT_SECONDS = 300


def decide(state: SubmissionState) -> None:
    """Wait for the submission, and decide about it; an approved one gets a finished run, which is slower."""
    try:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (waiting := Submission.objects.filter(state=SubmissionState.WAITING).first()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        if state == SubmissionState.APPROVED:
            run = create_run(gain=0.9)
            summarise([run.pk])
            waiting.runs.add(run)
        Submission.objects.filter(pk=waiting.pk).update(state=state, reason="decided")
    finally:
        connections.close_all()


def test_edits_are_submitted_and_their_verdicts_are_the_exit_status(
    site: list[str], clone: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    clone.edit("stack/net/if.c", lambda text: text.replace("line5;", "five;"))
    clone.commit("net: name five")
    clone.edit("stack/net/if.c", lambda text: text.replace("line30;", "thirty;"))
    clone.put("stack/net/new.c", "int fresh;\n")
    decider = threading.Thread(target=decide, args=[SubmissionState.APPROVED])
    decider.start()
    assert run_command([*site, "try"]) == 1
    decider.join()
    printed = capsys.readouterr()
    assert "is waiting" in printed.out
    assert "6 slower" in printed.out
    assert "a maintainer has to approve it" in printed.err
    assert "git does not know stack/net/new.c: not in the patch" in printed.err
    submission = Submission.objects.get()
    # The commit that the server does not have is part of the patch, and its parent is the base.
    assert b"five;" in submission.patch
    assert b"thirty;" in submission.patch
    assert b"fresh" not in submission.patch
    assert submission.base == clone.git("rev-parse", "origin/main").decode().strip()


def test_a_refused_submission_is_not_waited_for(
    site: list[str], clone: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    clone.edit("stack/net/if.c", lambda text: text.replace("line5;", "five;"))
    decider = threading.Thread(target=decide, args=[SubmissionState.REFUSED])
    decider.start()
    assert run_command([*site, "try"]) == 5
    decider.join()
    assert "is refused\n    decided\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("where", "words", "message"),
    [
        ("stack", [], "nothing has changed since "),
        ("..", [], "git rev-parse: fatal: not a git repository"),
        ("stack", ["--base", "no-such"], "git diff: fatal: bad revision 'no-such'"),
    ],
)
def test_what_cannot_be_submitted_is_explained(
    clone: Checkout,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: str,
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(clone.tree / where)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(clone.tree.parent.parent))
    assert run_command(["--server", "http://127.0.0.1:9", "try", *words]) == 2
    assert message in capsys.readouterr().err
