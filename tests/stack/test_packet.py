# SPDX-License-Identifier: BSD-2-Clause
"""The stack on an interface of the host, by packet sockets instead of a TAP device."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from tests.stack.topology import Topology

# Only the capability to open packet sockets, of all that root may do.
CAPABILITY = ("--inh-caps=+net_raw", "--ambient-caps=+net_raw")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *CAPABILITY)


def _boot(topology: Topology, conf: str, *program: str) -> subprocess.Popen[str]:
    path = topology.directory / "packet.conf"
    path.write_text(f'ctl.path="{topology.directory}/ctl"\n{conf}', encoding="ascii")
    words = [f"{topology.installed.prefix}/bin/bootstack", "-c", str(path), "--", *program]
    child = topology.start("dut", *NOBODY, *words, log="boot.log")
    until = time.monotonic() + 20
    while "stack: up\n" not in topology.said("boot.log"):
        assert child.poll() is None, topology.said("boot.log")
        assert time.monotonic() < until, topology.said("boot.log")
        time.sleep(0.02)
    return child


@pytest.mark.parametrize("queues", ["1", "2"])
def test_bulk_data_passes_an_interface_of_the_host(topology: Topology, queues: str) -> None:
    address = 'if.data0.driver="packet"\nif.data0.inet="10.99.0.2/24"\n'
    _boot(topology, f'{address}if.data0.queues="{queues}"\n', "iperf3", "-s", "--forceflush")
    topology.await_line("boot.log", "listening")
    for reverse in ((), ("-R",)):
        said = topology.on("left", "iperf3", "-J", "-c", "10.99.0.2", "-n", "100M", *reverse)
        assert json.loads(said)["end"]["sum_sent"]["bytes"] >= 100_000_000
    assert topology.value("if.data0.driver") == "packet"


@pytest.mark.parametrize(
    ("conf", "reason"),
    [
        ('if.data9.driver="packet"\n', "data9: No such device; is it an interface of the host"),
        ('if.data0.driver="pocket"\n', "there is no driver 'pocket'"),
        ('if.data0.inet="10.99.0.2/24"\n', "no driver makes an interface 'data0'; a line if.data0.driver="),
    ],
)
def test_what_cannot_be_is_explained(topology: Topology, conf: str, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        _boot(topology, conf, "true")


def test_the_capability_is_needed(topology: Topology) -> None:
    with pytest.raises(AssertionError, match=r"data0: Operation not permitted; .* the capability CAP_NET_RAW"):
        topology.boot({"if.data0.driver": "packet"})
