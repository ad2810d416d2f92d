# SPDX-License-Identifier: BSD-2-Clause
"""The Linux kernel as a target, from its knobs in a plan to verdicts."""

from pathlib import Path

import pytest
from django.test import Client

from perfweb.lab.models import Testbed
from perfweb.runs import services
from perfweb.runs.models import Artefact, Boot, RunState
from perfweb.runs.planfile import resized
from tests.integration.conftest import LabHosts, wait_for_state
from tests.integration.workers import Worker

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = Path(__file__).parents[2] / "perfweb" / "runs" / "plans" / "linux-gro.yaml"
TESTS = ("tcp.stream/host-host/ipv4", "tcp.rr/host-host/ipv4", "tcp.stream/host-router-host/ipv4")


def test_receive_offload_off_and_on_ends_in_verdicts(testbed: Testbed, worker: Worker, hosts: LabHosts) -> None:
    text = resized(PLAN.read_text(encoding="utf-8"), {"boots": "1", "samples": "2", "discard": "0"})
    run = services.submit(f"{text}gates: off\n", testbed.name)
    wait_for_state(run, RunState.DONE, RunState.FAILED)
    assert (run.state, run.reason) == (RunState.DONE, "")
    boots = Boot.objects.filter(run=run).select_related("variant")
    effective = {(boot.variant.name, boot.effective_tunables["link.offload.gro"]) for boot in boots}
    assert effective == {("gro-off", "off"), ("gro-on", "on")}
    assert {boot.effective_tunables["left.link.offload.tso"] for boot in boots} == {"off"}
    assert Artefact.objects.filter(run=run, name__endswith="counters-ethtool-S-data0.txt").count() == len(boots)
    page = Client().get(f"/runs/{run.number}/compare/gro-off..gro-on/").content.decode()
    assert all(test in page for test in TESTS)
    hosts.assert_clean(run)
