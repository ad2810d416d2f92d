# SPDX-License-Identifier: BSD-2-Clause
"""A run does not fail for what its testbed lacks: it goes back into the queue, and the testbed into quarantine."""

from collections.abc import Callable

import pytest
from django.conf import settings

from perfweb.lab.models import HealthCheck, Outage
from perfweb.runs import services, states
from perfweb.runs.invariants import violations
from perfweb.runs.models import RunState
from runners.driver import Failure, PlayFailedError, PlayResult
from runners.execute import execute
from runners.plays import Plays
from tests.factories import create_testbed

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = """\
name: one
baseline: a
variants: [{name: a, target: linux}]
tests: [tcp.rr/host-host/ipv4]
"""


def full(_: Plays) -> dict[str, object]:
    return {"demo-dut": {"facts": {"free_mb": {"/var": 3}, "load": 0.0}, "problems": ["3 MB are free"]}}


def unreachable(_: Plays) -> dict[str, object]:
    failure = Failure("demo-dut", "Look for what keeps a run from this host", "unreachable")
    raise PlayFailedError(PlayResult("health", failures=[failure]))


@pytest.mark.parametrize(("answer", "said"), [(full, "demo-dut: 3 MB are free"), (unreachable, "unreachable")])
def test_unfit_testbed(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[Plays], dict[str, object]], said: str
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
        assert said in run.reason
    assert HealthCheck.objects.count() == settings.QUARANTINE_FAULTS
    assert said in Outage.objects.get(kind="quarantine").why
    with pytest.raises(states.TestbedBusyError, match="out of service"):
        states.lease(run.number)
    assert violations() == []
