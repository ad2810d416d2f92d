# SPDX-License-Identifier: BSD-2-Clause
"""Runs with the reference stack as target: built, booted with its tunables, measured, and crashed."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from django.test import Client

from perfweb.lab.models import Testbed
from perfweb.reports.published import Published, beside
from perfweb.runs import services
from perfweb.runs.models import Artefact, Boot, Measurement, Run, RunState, Sample
from tests.integration.conftest import LabHosts, wait_for_state
from tests.integration.workers import BUILD_SECONDS

pytestmark = [
    pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("lasting_worker"),
    pytest.mark.timeout(BUILD_SECONDS + 300),
]  # fmt: skip
PLANS = Path("perfweb/runs/plans")
HOST = "host-host/ipv4"

PLAN = """\
name: tiny
baseline: deferred
variants:
  - {name: deferred, target: stack, tunables: {net.isr.dispatch: deferred}}
tests: [tcp.rr/host-host/ipv4]
samples: 4
discard: 1
boots: 2
layouts: 2
seconds: 1
gates: off
"""


def with_console(testbed: Testbed, folder: Path) -> Path:
    """Give the device under test a console, to which another process writes."""
    console, inventory = folder / "dut.console", folder / "inventory.yml"
    hosts = yaml.safe_load(Path(testbed.inventory).read_text(encoding="utf-8"))
    (dut,) = hosts["all"]["children"]["dut"]["hosts"].values()
    dut["console_log"] = str(console)
    inventory.write_text(yaml.safe_dump(hosts), encoding="utf-8")
    Testbed.objects.filter(pk=testbed.pk).update(inventory=str(inventory))
    return console


def test_stack_dies_under_a_measurement(testbed: Testbed, hosts: LabHosts, tmp_path: Path) -> None:
    console = with_console(testbed, tmp_path)
    console.write_text("of an earlier boot\n", encoding="utf-8")
    run = services.submit(PLAN, testbed.name)
    # Suspended, so that the sample has not ended when its server dies, however slow the test is.
    hosts.hold_sample(run, seconds=BUILD_SECONDS)
    with console.open("a", encoding="utf-8") as more:
        more.write("what the host has said\r\n")
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
    assert [first.layout, second.layout] == [1, 2]
    assert f"{build.prefix}/layouts/2/bootstack -c " in second.command
    assert "<small>layout 2</small>" in Client().get(f"/runs/{run.pk}/").content.decode()
    artefact = Artefact.objects.get(run=run, name__endswith="/console-dut.log")
    assert (artefact.boot, bytes(artefact.content)) == (first, b"what the host has said\n")
    for boot in (first, second):
        log = Artefact.objects.get(boot=boot, name__endswith="/boot.log")
        assert b"stack: up" in bytes(log.content)
    assert Sample.objects.filter(measurement__boot=second).counted().count() == 2
    hosts.assert_clean(run)


def test_stack_under_which_a_sample_does_not_end_is_debugged(testbed: Testbed, hosts: LabHosts) -> None:
    # Not with netserver, which ends with its client, often before it can be queried.
    plan = PLAN.replace("tcp.rr", "tcpconnect").replace("samples: 4\ndiscard: 1", "samples: 2\ndiscard: 0")
    plan = plan.replace("boots: 2", "boots: 2\ntimeout: 3")
    run = services.submit(plan, testbed.name)
    hosts.hold_sample(run, "tcpconnect", BUILD_SECONDS)
    wait_for_state(run, RunState.DONE, RunState.FAILED)
    assert (run.state, run.reason.split(";")[0]) == (RunState.DONE, "1 of 2 measurements failed")
    first, second = Boot.objects.filter(run=run)
    assert (first.state, second.state) == ("stopped", "stopped")
    debugger = bytes(Artefact.objects.get(run=run, name__endswith="/debugger.txt", boot=first).content).decode()
    assert debugger.startswith(f"== a sample of tcpconnect/{HOST} did not end in time\n$ ")
    assert "/ctl.sock ps\n" in debugger
    assert "wait channel" in debugger
    assert "its host" not in debugger
    assert ">debugger.txt</a>" in Client().get(f"/runs/{run.pk}/").content.decode()
    assert not Artefact.objects.filter(boot=second, name__endswith="/debugger.txt").exists()
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


def measured(plan: str, variants: Sequence[str], tests: Sequence[str], testbed: Testbed) -> Run:
    """A successful run of some variants and tests of an example plan, with one boot and one sample of each.

    Not of a release, whose optimisation takes two thirds of the time of a build; PLAN and the demo measure one.
    """
    document = yaml.safe_load((PLANS / f"{plan}.yaml").read_text(encoding="utf-8"))
    document["variants"] = [variant for variant in document["variants"] if variant["name"] in variants]
    for variant in document["variants"]:
        variant["build"] = [option.replace("=release", "=debug") for option in variant["build"]]
    document |= {"tests": list(tests), "boots": 1, "samples": 1, "discard": 0, "timeout": 30, "gates": "off"}
    run = services.submit(yaml.safe_dump(document), testbed.name)
    wait_for_state(run, RunState.DONE, RunState.FAILED, seconds=BUILD_SECONDS)
    assert (run.state, run.reason) == (RunState.DONE, "")
    counted = Sample.objects.counted().filter(measurement__boot__run=run, value__gt=0)
    found = counted.values_list("measurement__boot__variant__name", "measurement__test")
    assert sorted(found) == sorted((variant, test) for variant in variants for test in tests)
    return run


def published(run: Run) -> Published:
    """Return the comparison with published results on the page of a run."""
    assert Client().get(f"/runs/{run.pk}/").status_code == 200
    found = beside(run)
    assert found is not None
    return found


def test_unix_2006_measures_and_shows_where_locks_were_waited_for(testbed: Testbed, hosts: LabHosts) -> None:
    variants = ["single", "single-profiled", "global-profiled"]
    run = measured("unix-2006", variants, [f"unix.mysql.64/{HOST}"], testbed)
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    for boot in Boot.objects.filter(run=run):
        assert f"taskset -c {cpus} " in boot.command
        assert boot.effective_tunables["unix.locking"] in boot.variant.name
    contention = published(run).contention
    assert contention is not None
    failed = {row.name: row.here for row in contention.rows}
    for lock in ("UNIX-domain sockets", "descriptor table", "socket buffers"):
        assert None not in failed[lock]
    hosts.assert_clean(run)


def test_giant_2004_measures_one_processor_and_two(testbed: Testbed, hosts: LabHosts) -> None:
    run = measured("giant-2004", ["giant-up", "giant"], [f"unix.mysql.11/{HOST}"], testbed)
    words = {(row.test, row.effect.variant, row.base): row.words for row in published(run).rows}
    assert words[f"unix.mysql.11/{HOST}", "giant", "giant-up"] == "not enough data here"
    assert words[f"unix.mysql.11/{HOST}", "fine", "fine-up"] == "not measured here"
    hosts.assert_clean(run)


def test_parallel_2025_measures_in_memory(testbed: Testbed, hosts: LabHosts) -> None:
    run = measured("parallel-2025", ["exclusive", "shared-socket-batch"], [f"mem.tcp.1/{HOST}"], testbed)
    words = {(row.test, row.effect.variant, row.base): row.words for row in published(run).rows}
    assert words[f"mem.tcp.1/{HOST}", "shared-socket-batch", "exclusive"] == "not enough data here"
    hosts.assert_clean(run)
