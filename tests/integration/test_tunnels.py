# SPDX-License-Identifier: BSD-2-Clause
"""Tests through tunnels to both targets, and the report on a testbed whose kernel supports none.

tests/lab/test_vmlab.py has tunnels whatever this machine's kernel supports.
"""

import re
import subprocess

import pytest

from perfweb.lab.models import Outage, Testbed
from perfweb.runs import services
from perfweb.runs.models import Artefact, Boot, RunState, Sample
from playbooks.module_utils.tunnels import INTERFACE, TUNNELS, Tunnel
from tests.integration.conftest import LabHosts, wait_for_state
from tests.integration.workers import BUILD_SECONDS

pytestmark = [
    pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("lasting_worker"),
    pytest.mark.timeout(BUILD_SECONDS + 300),
]  # fmt: skip

# With layouts, because test_stack.py has this build, too.
PLAN = """\
name: tunnelled
baseline: direct
variants:
  - {{name: direct, target: stack, tunables: {{net.isr.dispatch: direct}}}}
  - {{name: linux, target: linux}}
tests: [tcp.rr/host-{kind}-host/ipv4, udp.rr/host-{kind}-host/ipv6]
samples: 1
discard: 0
boots: 1
layouts: 2
seconds: 1
gates: off
"""


def makes(tunnel: Tunnel) -> bool:
    """Whether the kernel of this machine supports them."""
    words = ["unshare", "--net", "ip", "link", "add", "x", "type", *tunnel.linux, "remote", "192.0.2.1"]
    return subprocess.run(words, capture_output=True).returncode == 0


def text(boot: Boot, view: str) -> str:
    return bytes(Artefact.objects.get(boot=boot, name__endswith=f"/counters-{view}.txt").content).decode()


@pytest.mark.parametrize("kind", TUNNELS)
def test_both_targets_are_reached_by_a_tunnel_or_the_run_ends_before_it_boots(
    testbed: Testbed, hosts: LabHosts, kind: str
) -> None:
    run = services.submit(PLAN.format(kind=kind), testbed.name)
    wait_for_state(run, RunState.DONE, RunState.FAILED, seconds=BUILD_SECONDS)
    boots = {boot.variant.name: boot for boot in Boot.objects.filter(run=run)}
    if makes(TUNNELS[kind]):
        assert (run.state, run.reason) == (RunState.DONE, "")
        trips = Sample.objects.counted().filter(measurement__boot=boots["direct"])
        assert trips.count() == 2
        for way in ("ipackets", "opackets"):
            counted = re.search(rf"^if\.{kind}0\.stats\.{way}: (\d+)$", text(boots["direct"], "sysctl"), re.MULTILINE)
            assert counted is not None
            assert int(counted[1]) > sum(trips.values_list("value", flat=True)) / 2
        assert f"{INTERFACE}@data0" in text(boots["linux"], "ip-link")
    else:
        assert (run.state, boots) == (RunState.FAILED, {})
        assert run.reason.startswith("this testbed cannot do the plan: ")
        for host in ("left", "dut"):
            assert f"{hosts.lab.host_name(host)}: its kernel makes no tunnel {kind} (" in run.reason
        assert not Outage.objects.exists()
    hosts.assert_clean(run)
