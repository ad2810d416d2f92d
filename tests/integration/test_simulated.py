# SPDX-License-Identifier: BSD-2-Clause
"""Runs on the simulated machine: a testbed of one host, with reproducible results."""

from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Means, Role, User
from perfweb.lab import services as lab_services
from perfweb.lab.models import Testbed
from perfweb.runs import services
from perfweb.runs.models import Boot, Measurement, Run, RunState, Sample
from perfweb.submissions import services as submissions
from perfweb.submissions.plans import MATRICES, Matrix
from perfweb.submissions.services import SubmissionRequest, submit
from perfweb.verdicts.text import run_text
from tests.integration.conftest import LabHosts, wait_for_state
from tests.integration.test_patches import series_of_the_stack, unoptimised
from tests.integration.workers import BUILD_SECONDS

pytestmark = [
    pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("lasting_worker"),
    pytest.mark.timeout(BUILD_SECONDS + 300),
]  # fmt: skip

# One more operation for each IPv4 packet.
PLAN = """\
name: simulated
baseline: plain
variants:
  - {name: plain, target: sim, build: [-Dplanted=true]}
  - {name: extra, target: sim, build: [-Dplanted=true], tunables: {debug.planted: extra_atomic}}
tests: [simulated.forward.1/host-host/ipv4, simulated.forward.1.atomics/host-host/ipv4, simulated.tcp.2/host-host/ipv4]
samples: 4
boots: 2
"""


@pytest.fixture
def simulator(testbed: Testbed, hosts: LabHosts) -> Testbed:
    return lab_services.register("sim", hosts.lab.simulator)


def simulated(text: str, testbed: Testbed) -> Run:
    run = services.submit(text, testbed.name)
    wait_for_state(run, RunState.DONE, RunState.FAILED, seconds=BUILD_SECONDS)
    return run


def values(run: Run, metric: str, test: str, variant: str) -> list[list[float]]:
    """The simulated samples, boot by boot."""
    boots = Boot.objects.filter(run=run, variant__name=variant).order_by("position")
    samples = Sample.objects.valid().filter(metric=metric, measurement__test=f"{test}/host-host/ipv4")
    return [list(samples.filter(measurement__boot=boot).values_list("value", flat=True)) for boot in boots]


def test_one_more_operation_is_measured_exactly_and_again_by_the_next_run(simulator: Testbed, hosts: LabHosts) -> None:
    run, again = simulated(PLAN, simulator), simulated(PLAN, simulator)
    assert (run.state, run.reason) == (RunState.DONE, "")
    for variant in ("plain", "extra"):
        for metric, test in (
            ("packets", "simulated.forward.1"),
            ("atomics", "simulated.forward.1"),
            ("throughput", "simulated.tcp.2"),
        ):
            boots = values(run, metric, test, variant)
            assert [len(boot) for boot in boots] == [2, 2]
            assert all(first == second > 0 for first, second in boots), "samples of one seed are alike"
            assert boots == values(again, metric, test, variant)
    (before, _), _ = values(run, "atomics", "simulated.forward.1.atomics", "plain")
    (after, _), _ = values(run, "atomics", "simulated.forward.1.atomics", "extra")
    assert after - before == pytest.approx(1, abs=0.01)
    assert list(Boot.objects.filter(run=run).order_by("position").values_list("seed", flat=True)) == [1, 1, 2, 2]
    commands = Measurement.objects.filter(boot__run=run, test__startswith="simulated.tcp.2").values_list(
        "command", flat=True
    )
    assert {command.partition("--seed ")[2] for command in commands} == {
        "1", "2", "1 --set debug.planted=extra_atomic", "2 --set debug.planted=extra_atomic"
    }  # fmt: skip
    hosts.assert_clean(run)


def test_an_unknown_tunable_is_named(simulator: Testbed, hosts: LabHosts) -> None:
    run = simulated(PLAN.replace("debug.planted", "debug.plented"), simulator)
    assert run.state == RunState.DONE
    assert run.reason.startswith("6 of 12 measurements failed")
    bad = Measurement.objects.filter(boot__run=run, boot__variant__name="extra")
    assert all("debug.plented" in measurement.reason for measurement in bad)
    hosts.assert_clean(run)


def test_verdicts_of_what_does_not_scatter(simulator: Testbed) -> None:
    run = simulated(PLAN, simulator)
    text = run_text(run)
    row = next(line for line in text.splitlines() if line.startswith("simulated.forward.1.atomics/"))
    assert row.endswith("slower")
    page = Client().get(f"/runs/{run.pk}/compare/plain..extra/")
    assert page.status_code == 200


def test_a_patch_is_compared_with_its_base(
    simulator: Testbed, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    test = "simulated.forward.1.atomics/host-host/ipv4"
    monkeypatch.setattr(submissions, "plan_text", unoptimised)
    monkeypatch.setitem(MATRICES, "sim", Matrix("sim", "one test, so that it is over soon", (test,), samples=4))
    settings.PATCH_REPOSITORY = tmp_path / "repository"
    checkout = series_of_the_stack(settings.PATCH_REPOSITORY)
    checkout.edit(
        "stack/netinet/ip_input.c",
        lambda text: text.replace(
            "void\nip_input(struct mbuf *m)\n{\n",
            "static atomic_u64 arrived;\n\nvoid\nip_input(struct mbuf *m)\n{\n\tatomic_count_u64(&arrived, 1);\n",
        ),
    )
    user = User.objects.create(username="ada", role=Role.MAINTAINER)
    actor = Actor(user.username, user.role, Means.PAGE, user=user)
    made = submit(actor, checkout.diff(), SubmissionRequest(simulator.name, "sim"))
    run = made.runs.get()
    wait_for_state(run, RunState.DONE, RunState.FAILED, seconds=BUILD_SECONDS)
    assert (run.state, run.reason) == (RunState.DONE, "")
    base, patch = (values(run, "atomics", "simulated.forward.1.atomics", name)[0][0] for name in ("base", "patch"))
    assert patch - base == pytest.approx(1, abs=0.01)
    assert f"{test} " in (text := run_text(run))
    assert "1 slower" in text
