# SPDX-License-Identifier: BSD-2-Clause
"""In production a contradiction in the database is shown until it is gone."""

import re

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from perfweb.faults.models import Fault
from perfweb.faults.services import Task, note
from perfweb.operations import tasks
from perfweb.runs.models import Artefact, Boot
from tests.factories import create_run

pytestmark = pytest.mark.django_db


def shown(client: Client) -> tuple[str, float]:
    """The health page's text about faults, and the metric of contradictions."""
    cache.clear()
    number = re.search(r"(?m)^perfweb_contradictions (\S+)", client.get("/metrics").content.decode())
    assert number
    return client.get("/health/").json()["faults"], float(number[1])


def test_contradiction_is_on_the_health_page_until_it_is_gone(client: Client) -> None:
    run = create_run()
    tasks.check_invariants()
    assert shown(client) == ("ok", 0)
    boot = Boot.objects.filter(run=run)[0]
    before = boot.state
    Boot.objects.filter(pk=boot.pk).update(state="up")
    tasks.check_invariants()
    tasks.check_all_invariants()
    words, count = shown(client)
    assert count == 1
    assert words.startswith(
        f"invariant: boots without a live run: {boot} is up, and nothing works on its run, 2 times "
    )
    assert "manage.py check_invariants" in words
    Boot.objects.filter(pk=boot.pk).update(state=before)
    tasks.check_invariants()
    assert shown(client) == ("ok", 0)


def test_cheap_look_keeps_what_only_the_other_one_finds(client: Client) -> None:
    create_run()
    Artefact.objects.filter(pk=Artefact.objects.all()[0].pk).update(sha256="0" * 64)
    tasks.check_invariants()
    assert shown(client)[1] == 0
    tasks.check_all_invariants()
    tasks.check_invariants()
    assert shown(client)[1] == 1


def test_fault_does_not_make_the_service_unhealthy(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    cache.clear()
    before = client.get("/health/").status_code
    for number in range(12):
        note(Task("deliver", "look at the log"), f"message {number}", KeyError("secret"))
    assert client.get("/health/").status_code == before
    words, _ = shown(client)
    assert "deliver: message 0 (look at the log)" in words
    assert words.endswith("and 2 more: manage.py faults")
    assert "secret" not in words
    call_command("faults")
    assert "KeyError('secret')" in capsys.readouterr().out
    call_command("faults", "--clear", str(Fault.objects.all()[0].pk))
    assert Fault.objects.count() == 11
