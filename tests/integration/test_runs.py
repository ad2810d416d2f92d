# SPDX-License-Identifier: BSD-2-Clause
"""A run from submission to its end: undisturbed, cancelled, and with its worker stopped."""

import signal
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from perfweb.lab.models import Testbed
from perfweb.measuring.tools import SERVER_PORTS
from perfweb.runs import progress, services
from perfweb.runs.models import Artefact, Boot, HostFacts, Measurement, Run, RunState, Sample
from runners.labs import netlab
from tests.integration.conftest import PLAN, LabHosts, history, wait_for_state
from tests.integration.workers import Worker
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)
TWO_VARIANTS = """\
name: tiny
baseline: a
variants: [{name: a, target: linux}, {name: b, target: linux}]
tests: [tcp.rr/host-host/ipv4]
samples: 3
discard: 1
boots: 1
gates: off
sentinel: {every: 2, samples: 1}
"""
LIFE = ["queued", "leased", "preparing", "building", "running", "restoring"]


def test_demo_command_runs_a_plan_to_its_verdict(
    testbed: Testbed, worker: Worker, hosts: LabHosts, settings: Settings, tmp_path: Path
) -> None:
    settings.LAB_INVENTORY = str(hosts.lab.inventory)
    (tmp_path / "tiny.yaml").write_text(TWO_VARIANTS, encoding="utf-8")
    output = StringIO()
    call_command("demo", plan=str(tmp_path / "tiny.yaml"), stdout=output)
    run = Run.objects.get()
    assert (run.state, run.reason) == (RunState.DONE, "")
    assert history(run) == [*LIFE, "done"]
    for measurement in Measurement.objects.filter(boot__run=run):
        assert (measurement.state, measurement.tool) == ("ok", "netperf")
        assert measurement.command.startswith(f"netperf -4 -H 10.{hosts.lab.net}.1.2 -p {SERVER_PORTS['netserver']} ")
        assert set(measurement.pinning) == {"client", "server"}
        assert "THROUGHPUT=" in bytes(measurement.artefacts.get().content).decode()
    samples = Sample.objects.filter(measurement__boot__run=run)
    assert samples.counted().count() == 6
    assert samples.primary().filter(discarded=True).count() == 4
    assert list(run.boots.values_list("variant__name", "sentinel")) == [
        ("a", True), ("a", False), ("b", False), ("a", True)
    ]  # fmt: skip
    assert {facts.role for facts in HostFacts.objects.filter(run=run)} == {"left", "dut", "right"}
    assert Artefact.objects.filter(run=run, kind="counters").exists()
    assert not run.testbed.leases.filter(released__isnull=True).exists()
    assert_progress_was_reported(run)
    hosts.assert_clean(run)
    assert "tcp.rr/host-host/ipv4 on b" in output.getvalue()
    assert "b against a, 95 % confidence: " in output.getvalue()
    assert f"/runs/{run.number}/compare/a..b/" in output.getvalue()
    assert_a_replay_measures_the_same_plan(run, tmp_path)


def assert_a_replay_measures_the_same_plan(run: Run, folder: Path) -> None:
    bundle = folder / "raw.tar"
    bundle.write_bytes(Client().get(f"/runs/{run.number}/raw.tar").getvalue())
    output = StringIO()
    call_command("replay", str(bundle), run=True, stdout=output)
    again = Run.objects.exclude(pk=run.pk).get()
    assert (again.state, again.plan, again.seed) == (RunState.DONE, run.plan, run.seed)
    assert "1 verdicts: each of them" in output.getvalue()
    assert f"/runs/{again.number}/compare/a..b/" in output.getvalue()


def assert_progress_was_reported(run: Run) -> None:
    events = progress.progress_since(run.number)
    assert [event.values["state"] for event in events if event.name == "state"] == [*LIFE, "done"]
    assert [event.values["position"] for event in events if event.name == "boot"] == [0, 1, 2, 3]
    assert [event.values["state"] for event in events if event.name == "measurement"] == ["ok"] * 4
    shares = [event.values["fraction"] for event in events if event.name == "eta"]
    assert shares == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_a_gate_fires_for_some_samples_and_they_are_taken_again(
    testbed: Testbed, worker: Worker, hosts: LabHosts
) -> None:
    """TCP's congestion control changes between the end of one sample and the beginning of the next."""
    gates = "gates: {steal: off, foreign: off}\nvoids_allowed: 20\n"
    run = services.submit(PLAN.replace("boots: 2\n", "boots: 1\n").replace("gates: off\n", gates), testbed.name)
    warm_up = wait_for_client(hosts, set())
    hold_client(hosts, warm_up)
    try:
        hosts.use_reno("left")
        disturbed = wait_for_client(hosts, set())
        hosts.release("left", "netperf")
        hold_client(hosts, disturbed)
    finally:
        netlab.set_congestion_control(hosts.lab)
        hosts.release("left", "netperf")
    wait_for_state(run, RunState.DONE, RunState.FAILED)
    assert (run.state, run.reason) == (RunState.DONE, "")
    measurement = Measurement.objects.get(boot__run=run)
    samples = measurement.samples.primary().order_by("index")
    assert measurement.voids >= 1
    assert samples.counted().count() == 4
    assert [sample.index for sample in samples] == list(range(1 + 4 + measurement.voids))
    void = samples.exclude(void="")
    assert void.count() == measurement.voids
    assert all("congestion: in " in sample.void and "was reno instead of cubic" in sample.void for sample in void)
    assert {gauges["congestion_control"] for gauges in measurement.gauges} == {"cubic", "reno"}
    page = Client().get(f"/runs/{run.number}/").content.decode()
    assert f"{measurement.voids} void sample" in page
    hosts.assert_clean(run)


def wait_for_client(hosts: LabHosts, before: set[int]) -> set[int]:
    """Wait for a new client; return its process id."""
    found: set[int] = set()

    def there() -> bool:
        found.update(pid for pid in hosts.processes("left", "netperf") if pid not in before)
        return bool(found)

    wait_for(there, "another client")
    return found


def hold_client(hosts: LabHosts, before: set[int]) -> None:
    """Suspend the first new client."""
    wait_for(lambda: bool(wait_for_client(hosts, before)) and hosts.hold("left", "netperf"), "a client to hold")


def test_cancelled_in_the_middle(run: Run, hosts: LabHosts) -> None:
    hosts.hold_sample(run)
    services.cancel(run.number)
    wait_for_state(run, RunState.CANCELLED)
    assert history(run) == [*LIFE, "cancelled"]
    assert Boot.objects.get(run=run).state == "interrupted"
    hosts.assert_clean(run)


def test_worker_that_is_stopped_leaves_a_clean_lab(run: Run, worker: Worker, hosts: LabHosts) -> None:
    hosts.hold_sample(run)
    worker.signal(signal.SIGTERM)
    wait_for_state(run, RunState.INTERRUPTED)
    assert run.reason == "the worker was stopped"
    hosts.assert_clean(run)
    services.resume(run.number)
    worker.start()
    wait_for_state(run, RunState.DONE)
