# SPDX-License-Identifier: BSD-2-Clause
"""Old raw outputs are replaced by a note; samples, verdicts and their explanations stay."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from perfweb.operations import thinning
from perfweb.operations.tasks import give_up_raw_outputs
from perfweb.operations.thinning import Thinned, thin
from perfweb.runs.invariants import violations
from perfweb.runs.models import Artefact, ArtefactKind, Run
from perfweb.runs.summaries import summarise
from perfweb.tracking.models import Alert, AlertState, TrackedBranch
from tests.factories import create_run

pytestmark = pytest.mark.django_db
LONG = b"x" * 5000


@pytest.fixture
def run() -> Run:
    """A run that ended ten days ago, with long texts."""
    made = create_run()
    summarise([made.pk])
    ended = timezone.now() - timedelta(days=10)
    Run.objects.filter(pk=made.pk).update(started=ended, ended=ended)
    digest = hashlib.sha256(LONG).hexdigest()
    Artefact.objects.filter(run=made).update(content=LONG, size=len(LONG), sha256=digest)
    for name, kind in (("patch.mbox", ArtefactKind.PATCH), ("counters.txt", ArtefactKind.COUNTERS)):
        Artefact.objects.create(run=made, kind=kind, name=name, content=LONG, size=len(LONG), sha256=digest)
    return made


def test_outputs_go_and_what_explains_verdicts_stays(client: Client, run: Run) -> None:
    comparison = f"/api/v1/comparisons?base={run.pk}/deferred&with={run.pk}/direct"
    before = client.get(comparison).json()
    outputs = Artefact.objects.filter(run=run, kind=ArtefactKind.TOOL_OUTPUT)
    done = thin(9)
    assert done.texts >= outputs.count() > 0
    assert done.size == 5000 * done.texts
    output = outputs[0]
    text = bytes(Artefact.objects.get(pk=output.pk).content).decode()
    assert b"".join(client.get(f"/artefacts/{output.pk}/").streaming_content).decode() == text  # type: ignore[attr-defined]
    assert f"5000 bytes with the SHA-256 {hashlib.sha256(LONG).hexdigest()}" in text
    kept = Artefact.objects.filter(run=run, size=5000).values_list("kind", flat=True)
    assert set(kept) >= {ArtefactKind.PATCH, ArtefactKind.COUNTERS}
    assert not {*kept} & {*thinning.KINDS}
    assert client.get(comparison).json() == before
    assert not list(violations())
    assert client.get(f"/runs/{run.pk}/raw.tar").status_code == 200
    assert thin(9) == Thinned()


def test_younger_runs_and_small_texts_are_left_alone(run: Run) -> None:
    assert thin(11) == Thinned()
    Artefact.objects.update(content=b"short", size=5, sha256=hashlib.sha256(b"short").hexdigest())
    assert thin(9) == Thinned()


def test_what_an_open_alert_rests_on_is_kept(run: Run) -> None:
    branch = TrackedBranch.objects.create(name="head", plan="", testbed=run.testbed, since="a" * 40)
    commit = branch.commits.create(position=1, sha="a" * 40, subject="net", author="ada", committed=timezone.now())
    commit.runs.add(run)
    alert = Alert.objects.create(branch=branch, since=commit, until=commit, state=AlertState.CONFIRMED)
    assert thin(9) == Thinned()
    Alert.objects.filter(pk=alert.pk).update(state=AlertState.FIXED)
    assert thin(9).texts > 0


def test_a_rule_of_the_settings_does_it(run: Run, settings: Settings) -> None:
    settings.RAW_KEPT_DAYS = 0
    give_up_raw_outputs()
    assert thin(9).texts > 0
    Artefact.objects.filter(kind=ArtefactKind.BOOT_LOG).update(
        content=LONG, size=len(LONG), sha256=hashlib.sha256(LONG).hexdigest()
    )
    settings.RAW_KEPT_DAYS = 9
    give_up_raw_outputs()
    assert thin(9) == Thinned()


def test_the_command_prints_the_number_of_bytes(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("thin", "9", "--dry-run")
    would = capsys.readouterr().out
    assert "bytes would be given up" in would
    call_command("thin", "9")
    assert capsys.readouterr().out == would.replace("would be given", "given")
    with pytest.raises(CommandError, match="at least 1"):
        call_command("thin", "0")


def test_it_goes_on_where_it_was_interrupted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "AT_ONCE", 1)
    assert thin(9, most=1).texts == 1
    assert thin(9).texts > 1
