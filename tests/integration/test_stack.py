# SPDX-License-Identifier: BSD-2-Clause
"""Runs with the reference stack as target: it is built, booted with its tunables, measured, and may die."""

import pytest

from perfweb.lab.models import Testbed
from perfweb.runs import services
from perfweb.runs.models import Artefact, Boot, Measurement, RunState, Sample
from tests.integration.conftest import LabHosts, wait_for, wait_for_state

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("worker")]
BUILD_SECONDS = 600

PLAN = """\
name: tiny
baseline: deferred
variants:
  - {name: deferred, target: stack, tunables: {net.isr.dispatch: deferred}}
tests: [tcp.rr/host-host/ipv4]
samples: 4
discard: 1
boots: 2
seconds: 1
"""


def test_stack_dies_under_a_measurement(testbed: Testbed, hosts: LabHosts) -> None:
    run = services.submit(PLAN, testbed.name)
    # Held: however late we are, the sample has not ended when its server dies.
    wait_for(lambda: hosts.hold("left", "netperf"), "the first sample", BUILD_SECONDS)
    hosts.kill("dut", "netserver")
    hosts.release("left", "netperf")
    wait_for_state(run, RunState.DONE, RunState.FAILED)
    assert run.state == RunState.DONE
    assert run.reason.startswith("1 of 2 measurements failed; the first: ")
    first, second = Boot.objects.filter(run=run)
    assert (first.state, second.state) == ("crashed", "stopped")
    assert Measurement.objects.get(boot=first).state == "failed"
    assert second.effective_tunables["net.isr.dispatch"] == "deferred"
    build = second.variant.build
    assert build is not None
    assert f"{build.prefix}/bin/bootstack -c " in second.command
    for boot in (first, second):
        log = Artefact.objects.get(boot=boot, kind="boot-log")
        assert b"stack: up" in bytes(log.content)
    assert Sample.objects.filter(measurement__boot=second).counted().count() == 2
    hosts.assert_clean(run)


def test_unknown_tunable_fails_the_boot_and_is_named(testbed: Testbed, hosts: LabHosts) -> None:
    run = services.submit(PLAN.replace("net.isr.dispatch", "net.isr.despatch"), testbed.name)
    wait_for_state(run, RunState.DONE, RunState.FAILED, seconds=BUILD_SECONDS)
    assert run.state == RunState.FAILED
    assert run.reason.startswith("all 2 measurements failed; the first: not measured: it did not boot")
    assert "net.isr.despatch" in run.reason
    for boot in Boot.objects.filter(run=run):
        assert boot.state == "failed"
        assert "net.isr.despatch" in boot.error
        assert Measurement.objects.get(boot=boot).reason.startswith("not measured: it did not boot")
    hosts.assert_clean(run)
