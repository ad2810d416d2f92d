# SPDX-License-Identifier: BSD-2-Clause
"""The reference stack on the device under test: booted, queried, measured, crashed, restored."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfweb.measuring import tools
from perfweb.runs.catalogue import FAMILIES, TESTS, Test
from perfweb.verdicts.lockprofiles import read_profile
from playbooks.module_utils import processes
from runners.ansible import driver
from runners.ansible.driver import PlayResult
from runners.labs import netlab
from runners.labs.netlab import Lab
from tests.lab.measuring import measured

BUILDS = netlab.HOSTS_ROOT / "builds"
OPTIONS = ["-Dbuildtype=debugoptimized", "-Dlock_profiling=true"]


class Run:
    """A run of one build on a lab."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.about: dict[str, Any] = {"run_id": f"stack-{lab.name}", "target": "stack"}

    def play(self, name: str, **values: Any) -> PlayResult:
        extra = {**self.about, **values}
        listener = extra.pop("listener", driver.NO_LISTENER)
        inventory = self.lab.inventory
        return driver.play(name, inventory=inventory, extra_vars=extra, timeout=600, listener=listener).require_ok()

    def on_dut(self, *argv: str) -> str:
        command = ["ip", "netns", "exec", self.lab.namespace("dut"), *argv]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def run(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Build this tree's stack, with counters of its locks, under a unique name.

    Not as a release, because link-time optimisation takes half of the time; tests/integration/test_stack.py builds one.
    """
    made, key = Run(lab), f"stack-{lab.name}-{os.urandom(4).hex()}"
    archive = tmp_path_factory.mktemp("source") / "stack.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(driver.ROOT / "stack", "stack")
    made.play("prepare")
    built = made.play("build", build_key=key, source_archive=archive, meson_options=OPTIONS)
    made.about["prefix"] = built.data["prefix"]
    yield made
    made.play("restore")
    subprocess.run(["rm", "-rf", str(BUILDS / key)], check=True)


def data_address(run: Run, test: Test) -> str:
    """Return the address of the server of a test."""
    link = run.lab.links("dut" if test.topology == "host-host" else "right")[0]
    return str(link.address6 if test.family == "ipv6" else link.address).split("/")[0]


def test_a_server_inside_the_stack_answers_and_a_crash_is_reported(run: Run) -> None:
    tunables = {"net.isr.dispatch": "deferred", "debug.lock.prof.enable": "1"}
    boot: dict[str, Any] = {"boot_id": "inside", "topology": "host-host", "server": "netserver", "tunables": tunables}
    Path("/dev/net/tun").chmod(0o600)  # A machine without udev; the boot has to cope.
    booted = run.play("boot", **boot).data
    assert "stack: up" in booted["boot_log"].splitlines()
    assert 'net.isr.dispatch="deferred"' in booted["loader_conf"]
    assert booted["effective"]["net.isr.dispatch"] == "deferred"
    assert booted["commands"]["stack"][-5:] == ["netserver", "-D", "-f", "-p", "12865"]

    process = processes.running(run.lab.root / f"{run.about['run_id']}-dut" / "inside" / "stack.pid")
    assert process is not None
    status = Path(f"/proc/{process.pid}/status").read_text()
    user = int(status.split("Uid:\t")[1].split()[0])
    assert 0x70000000 <= user < 0x80000000
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status
    inside = run.on_dut("nsenter", f"--net=/proc/{process.pid}/ns/net", "ip", "-brief", "address").split("\n")
    assert {line.split()[0].partition("@")[0] for line in inside if line} == {"lo", "data0", "data1", "tap0", "tap1"}
    assert "inet" not in "".join(inside)

    tests = [TESTS[f"{name}/host-host/ipv4"] for name in ("tcp.rr", "tcp.cc", "tcp.bidirectional")]
    tests.append(TESTS["tcp.rr/host-host/ipv6"])
    clients = [tools.command(test.measure, data_address(run, test), 1, "") for test in tests]
    for test, (sample,) in zip(tests, measured(run.play, *clients, **boot), strict=True):
        assert sample["rc"] == 0, (test.name, sample)
        assert tools.parse(test.measure, sample["stdout"])
    counters = run.play("collect", **boot)
    assert counters.data["problems"] == []
    assert "tap0" in counters.data["counters"]["ifconfig"]
    assert any(costs["count"] for costs in read_profile(counters.data["counters"]["lockprof"]).values())
    assert "mutexprof" not in counters.data["counters"]

    processes.signal_process(process, signal.SIGSEGV)
    assert processes.wait_until_gone(process, 60)
    stopped = run.play("stop", **boot).data
    assert stopped["crashed"] is True
    assert stopped["exit_status"] == 128 + signal.SIGSEGV
    assert "stack: up" in stopped["log"]


def test_tcpconnect_of_the_build_serves_ipv6(run: Run) -> None:
    boot: dict[str, Any] = {"boot_id": "six", "topology": "host-host", "server": "tcpconnect-6"}
    booted = run.play("boot", **boot).data
    link = run.lab.links("dut")[0]
    assert booted["effective"]["if.tap0.inet6"] == link.address6
    client = [f"{run.about['prefix']}/bin/tcpconnect", "-c", link.address6.split("/")[0], "-p", "5301", "-t", "1"]
    ((sample,),) = measured(run.play, client, **boot)
    assert sample["rc"] == 0, sample
    run.play("stop", **boot)


def test_the_debugger_of_a_stack_is_queried_or_its_host_if_it_does_not_respond(run: Run) -> None:
    boot: dict[str, Any] = {"boot_id": "hung", "topology": "host-host", "server": "netserver"}
    assert run.play("debugger", **boot).data["debugger"] == "", "there is none"
    pid = run.play("boot", **boot).data["pid"]
    debugger = run.play("debugger", **boot).data["debugger"]
    views = [part.splitlines() for part in debugger.split("$ ")[1:]]
    assert [view[0].split("ctl.sock ")[1] for view in views] == ["ps", "show alllocks", "show stacks"]
    assert "wait channel" in views[0][1]
    assert all(len(view) > 1 for view in views)
    assert "its host" not in debugger

    os.kill(pid, signal.SIGSTOP)
    debugger = run.play("debugger", **boot).data["debugger"]
    assert "No response within 3 s. The threads as its host sees them:\n" in debugger
    assert "show alllocks" not in debugger, "nothing more was asked"
    assert f"/proc/{pid}/task/{pid}:\n" in debugger
    assert "State:\tT (stopped)" in debugger
    stopped = run.play("stop", **boot).data
    assert (stopped["crashed"], stopped["exit_status"]) == (False, 128 + signal.SIGKILL)
    assert run.play("debugger", **boot).data["debugger"] == ""


def test_the_stack_as_a_router_and_restore_removes_its_devices(run: Run) -> None:
    for server, family in (("iperf3", "address"), ("iperf3-6", "address6")):
        boot: dict[str, Any] = {"boot_id": f"router-{family}", "topology": "host-router-host", "server": server}
        booted = run.play("boot", **boot).data
        assert booted["effective"]["net.inet.ip.forwarding"] == "1"
        address = getattr(run.lab.links("right")[0], family).split("/")[0]
        client = ["iperf3", "-c", address, "-t", "1", "-J"]
        ((sample,),) = measured(run.play, client, **boot)
        assert sample["rc"] == 0, sample
        stopped = run.play("stop", **boot).data
        assert stopped["crashed"] is False
        assert set(stopped["ended"]) == {"stack", "server"}

    run.play("restore")
    links = run.on_dut("ip", "-br", "link")
    assert "tap" not in links
    assert "data0" in links
    assert "data1" in links
    assert "ingress" not in run.on_dut("tc", "qdisc", "show", "dev", "data0")
    run.play("prepare")


def test_large_datagrams_travel_in_fragments(run: Run) -> None:
    boot: dict[str, Any] = {"boot_id": "large", "topology": "host-host", "server": "netserver", "tunables": {}}
    run.play("boot", **boot)
    tests = [TESTS[f"udp.rr.8000/host-host/{family}"] for family in FAMILIES]
    clients = [tools.command(test.measure, data_address(run, test), 1, "") for test in tests]
    trips = 0.0
    for test, (sample,) in zip(tests, measured(run.play, *clients, **boot), strict=True):
        assert sample["rc"] == 0, (test.name, sample)
        trips += tools.parse(test.measure, sample["stdout"])[0].value
    statistics = run.play("collect", **boot).data["counters"]["netstat-s"]
    for what in ("fragments received", "fragments sent"):
        counted = sum(map(int, re.findall(rf"^\s*(\d+) {what}", statistics, re.MULTILINE)))
        assert counted > 5 * trips, statistics


@pytest.mark.parametrize(
    "names",
    [
        ["unix.mysql.64/host-host/ipv4"],
        ["mem.tcp.10/host-host/ipv4"],
        [
            "iperf3.100/host-host/ipv4",
            "iperf3.100.reverse/host-host/ipv4",
            "iperf3.10.bidirectional/host-host/ipv4",
            "udp.packets.64/host-host/ipv4",
            "udp.packets.mtu.reverse/host-host/ipv4",
        ],
        ["tcpbench.10/host-host/ipv6"],
        ["udp.blast/host-host/ipv6"],
        ["udp.blast/host-router-host/ipv4", "udp.ndr/host-router-host/ipv4", "udp.loaded/host-router-host/ipv4"],
    ],
    ids=lambda names: names[0],
)
def test_a_load_finds_its_server(run: Run, names: list[str]) -> None:
    tests = [TESTS[name] for name in names]
    test = tests[0]
    tunables = {"unix.sockets": "stack"} if test.server == "unixbench" else {}
    boot: dict[str, Any] = {"boot_id": "load", "topology": test.topology, "server": test.server, "tunables": tunables}
    effective = run.play("boot", **boot).data["effective"]
    assert effective.get("if.mem0.wire", "") == ("mirror" if test.server == "tcpload" else "")
    commands = [tools.command(test.measure, data_address(run, test), 1, run.about["prefix"]) for test in tests]
    for command, test in zip(commands, tests, strict=True):
        if test.measure.times > 1:
            command[command.index("-t") + 1] = "0.1"  # a trial
    order = {"busy": list(tools.busy(test.measure)), "patience": 10}
    samples = measured(run.play, *commands, timeout=60, order=order, **boot)
    for test, (sample,) in zip(tests, samples, strict=True):
        assert sample["rc"] == 0, (test.name, sample)
        assert tools.parse(test.measure, sample["stdout"])
    assert run.play("stop", **boot).data["crashed"] is False
