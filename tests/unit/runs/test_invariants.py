# SPDX-License-Identifier: BSD-2-Clause
"""The check of the whole database finds each contradiction, and no false ones."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from perfweb.lab.models import Lease
from perfweb.runs.invariants import violations
from perfweb.runs.models import Artefact, Boot, Measurement, Run, RunTransition, Sample, Summary
from perfweb.runs.summaries import summarise
from tests.factories import create_boot, create_run, make_void

pytestmark = pytest.mark.django_db
TESTS = ("tcp.rr/host-host/ipv4", "udp.rr/host-host/ipv4")


@pytest.fixture
def run() -> Run:
    run = create_run(tests=TESTS)
    make_void(Measurement.objects.filter(boot__run=run)[0], 3, "steal: 5 %")
    summarise([run.number])
    return run


def test_a_run_as_a_worker_leaves_it_contradicts_nothing(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert violations() == []
    call_command("check_invariants")
    assert capsys.readouterr().out == "all 10 invariants hold\n"


def hold_the_testbed(run: Run) -> None:
    Lease.objects.create(testbed=run.testbed, holder="run 0", expires=timezone.now() + timedelta(hours=1))


def work_without_lease(run: Run) -> None:
    Run.objects.update(state="running", ended=None)
    RunTransition.objects.filter(run=run, to_state__in=["restoring", "done"]).delete()


def leave_a_step_out(run: Run) -> None:
    RunTransition.objects.get(run=run, to_state="building").delete()


def change_the_state_alone(_: Run) -> None:
    Run.objects.update(state="failed")


def take_the_end_away(_: Run) -> None:
    Run.objects.update(ended=None)


def leave_a_boot_up(run: Run) -> None:
    Boot.objects.filter(run=run, position=0).update(state="up")


def measure_again(run: Run) -> None:
    first = Measurement.objects.filter(boot__run=run, boot__position=0)[0]
    boot = create_boot(run, first.boot.variant, "host-host", "netserver", 99)
    Boot.objects.filter(pk=boot.pk).update(position=0, attempt=2)
    Measurement.objects.filter(pk=first.pk).update(voids=0)
    Measurement.objects.create(
        boot=boot, test=first.test, tool="netperf", metric=first.metric, state="ok", started=boot.started, seconds=1
    )


def try_another_boot_again(run: Run) -> None:
    first = Boot.objects.filter(run=run, position=0).get()
    again = create_boot(run, first.variant, "host-host", "netserver", 99, sentinel=True)
    Boot.objects.filter(pk=again.pk).update(position=0, attempt=2)


def lose_samples(run: Run) -> None:
    Sample.objects.filter(measurement=Measurement.objects.filter(boot__run=run)[1]).delete()


def count_a_sample_twice(run: Run) -> None:
    summary = Summary.objects.filter(run=run)[0]
    Summary.objects.filter(pk=summary.pk).update(n=summary.n + 1)


def change_the_output_of_a_tool(run: Run) -> None:
    Artefact.objects.filter(pk=run.artefacts.all()[0].pk).update(content=b"faster")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (hold_the_testbed, "held by run 0 without a run that works there"),
        (work_without_lease, "is running and holds no testbed"),
        (leave_a_step_out, "went from preparing to building → running"),
        (change_the_state_alone, "is failed, and its history ends with done"),
        (take_the_end_away, "is done and has no end"),
        (leave_a_boot_up, "is up, and nothing works on its run"),
        (measure_again, "counts 2 times"),
        (try_another_boot_again, "are not at the same"),
        (lose_samples, "is good and has no sample that counts"),
        (count_a_sample_twice, "samples, and there are"),
        (change_the_output_of_a_tool, "has changed since it was stored"),
    ],
)
def test_each_contradiction_is_found(run: Run, damage: Callable[[Run], None], reason: str) -> None:
    damage(run)
    assert any(reason in found for found in violations())
    with pytest.raises(CommandError, match="contradictions"):
        call_command("check_invariants")
