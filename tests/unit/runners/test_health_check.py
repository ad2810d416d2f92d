# SPDX-License-Identifier: BSD-2-Clause
"""An unfit testbed does not fail a run: the run is queued again, and the testbed goes into quarantine."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings

from perfweb.lab.inventory import read_inventory
from perfweb.lab.models import HealthCheck, Outage
from perfweb.runs import services, states
from perfweb.runs.invariants import violations
from perfweb.runs.models import RunState
from perfweb.runs.planfile import read_plan
from runners import health_check
from runners.ansible.driver import Failure, PlayFailedError, PlayResult
from runners.ansible.plays import Plays
from runners.execute import execute
from tests.factories import create_testbed

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = """\
name: one
baseline: a
variants: [{name: a, target: linux}]
tests: [tcp.rr/host-host/ipv4]
"""


def test_the_inventory_of_the_controller_has_the_last_word_on_a_command_line(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.yml"
    text = Path("playbooks/inventories/example.yml").read_text(encoding="utf-8")
    inventory.write_text(text.replace("cpus: [2, 3]", "cpus: [2, 3]\n          command_line_words: [nosmt]"))
    plan = PLAN.replace("linux}", "linux, tunables: {boot.command_line: mitigations=off}}")
    health_check.require_words(read_plan(plan.replace("mitigations=off", "nosmt")), read_inventory(inventory))
    with pytest.raises(
        health_check.UnableError, match=r"does not allow boot\.command_line of variant a: 'mitigations'"
    ):
        health_check.require_words(read_plan(plan), read_inventory(inventory))


def full(_: Plays) -> dict[str, object]:
    return {"demo-dut": {"facts": {"free_mb": {"/var": 3}, "load": 0.0}, "problems": ["3 MB are free"]}}


def unreachable(_: Plays) -> dict[str, object]:
    failure = Failure("demo-dut", "Check the host's health", "unreachable")
    raise PlayFailedError(PlayResult("health", failures=[failure]))


@pytest.mark.parametrize(("answer", "reason"), [(full, "demo-dut: 3 MB are free"), (unreachable, "unreachable")])
def test_unfit_testbed(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[Plays], dict[str, object]], reason: str
) -> None:
    monkeypatch.setattr(Plays, "health", answer)
    monkeypatch.setattr(settings, "UNFIT_SECONDS", 0)
    create_testbed()
    run = services.submit(PLAN, "demo")
    for _ in range(settings.QUARANTINE_FAULTS):
        assert not Outage.objects.exists()
        execute(run.number)
        run.refresh_from_db()
        assert run.state == RunState.QUEUED
        assert reason in run.reason
    assert HealthCheck.objects.count() == settings.QUARANTINE_FAULTS
    assert reason in Outage.objects.get(kind="quarantine").why
    with pytest.raises(states.TestbedBusyError, match="out of service"):
        states.lease(run.number)
    assert violations() == []
