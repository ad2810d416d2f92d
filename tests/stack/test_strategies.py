# SPDX-License-Identifier: BSD-2-Clause
"""Dispatch and locks of protocol input: every strategy carries traffic under loss."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.stack.test_router import ROUTER, send_a_stream
from tests.stack.topology import PYTHON, Topology

HARM = {f"if.tap{i}.impair.{what}": "5000" for i in range(2) for what in ("loss", "dup", "reorder", "corrupt")}

# A program that connects to itself.
DATAGRAMS = 200
TO_ITSELF = f"""
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.bind(("127.0.0.1", 5000))
    for i in range({DATAGRAMS}):
        sock.sendto(bytes([i]), ("127.0.0.1", 5000))
        assert sock.recv(1) == bytes([i])
print("all are back", flush=True)
time.sleep(60)
"""

# Two CPUs for a stack that uses one. On a machine with one CPU these are refused for that reason.
HERE = sorted(os.sched_getaffinity(0))
TWO_CPUS = f"{HERE[0]},{HERE[1] if len(HERE) > 1 else HERE[0] + 1}"


def refusal_of_two_cpus(user: str) -> str:
    """The boot's output for TWO_CPUS if `user` keeps it on one."""
    why = f" has 2 CPUs, but {user} uses one" if len(HERE) > 1 else ": this process may not run there"
    return f"'{TWO_CPUS}'{why}"


# Combinations that exclude each other, and the boot's message.
REFUSED = {
    "several threads in 2005": (
        {"net.isr.generation": "2005", "net.isr.maxthreads": "2"},
        "the generation of 2005 has one thread",
    ),
    "hybrid in 2005": (
        {"net.isr.generation": "2005", "net.isr.dispatch": "hybrid"},
        "supports only direct and deferred",
    ),
    "one CPU and two": (
        {"kern.smp.disabled": "1", "machine.cpus": TWO_CPUS},
        refusal_of_two_cpus('kern.smp.disabled="1"'),
    ),
    "groups of workers that are not": (
        {"net.inet.tcp.pcbtable": "groups-thread", "net.isr.generation": "2005"},
        "the netisr of 2005 has no workers",
    ),
    "groups of workers and one thread": (
        {
            "net.inet.tcp.pcbtable": "groups-thread",
            "net.inet.tcp.input": "shared-socket",
            "net.inet.ip.alone": "tcp",
        },
        "net.inet.ip.alone requires one thread",
    ),
    "no driver": ({"if.lo0.needsgiant": "1"}, "lo0: it has no driver that needs Giant"),
    "no right": ({"machine.sched": "fifo"}, "needs the capability CAP_SYS_NICE"),
}


def stack_threads(pid: int) -> dict[str, Path]:
    """The threads of the process that booted, by name."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {(task / "comm").read_text(encoding="utf-8").strip(): task for task in tasks}


def cpus_of(task: Path) -> str:
    """The CPUs on which a thread may run, in the kernel's format."""
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)$", (task / "status").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    "how",
    [
        {"net.isr.generation": "2005", "net.isr.direct": "1"},
        {"net.isr.generation": "2005", "net.isr.enable": "0", "debug.mpsafenet": "0"},
        {"net.isr.dispatch": "hybrid", "net.isr.maxthreads": "-1", "net.isr.proto.ip.policy": "cpu"},
        {"net.isr.dispatch": "deferred", "net.isr.maxthreads": "3", "net.isr.proto.ip.policy": "source"},
        {
            "if.tap0.needsgiant": "1",
            "if.tap1.needsgiant": "1",
            "if.tap1.transmit": "deferred",
            "lock.giant_adaptive": "0",
        },
        {"debug.needsgiant": "arp", "net.isr.proto.ip.mpsafe": "0", "lock.mutex": "block"},
        {"kern.smp.disabled": "1", "lock.mutex": "spin", "net.isr.dispatch": "deferred"},
        {"machine.placement": "pinned", "machine.smt": "0", "machine.sched": "batch"},
    ],
    ids=lambda how: " ".join(f"{name.rpartition('.')[2]}={value}" for name, value in how.items()),
)
def test_a_stream_arrives_whole(topology: Topology, how: dict[str, str]) -> None:
    topology.boot({**ROUTER, **HARM, **how})
    send_a_stream(topology)


@pytest.mark.parametrize(("how", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_go_together_is_refused(topology: Topology, how: dict[str, str], why: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(why)):
        topology.boot(how)


def test_the_generation_of_2005_counts_by_its_names(topology: Topology) -> None:
    topology.boot({**ROUTER, "net.isr.generation": "2005"})
    send_a_stream(topology)
    assert int(topology.value("net.isr.directed")) > 0
    assert topology.ask("sysctl", "net.isr.direct=0") == "net.isr.direct: 0\n"
    send_a_stream(topology)
    deferred = int(topology.value("net.isr.deferred"))
    assert deferred > 0
    assert int(topology.value("net.isr.count")) == deferred + int(topology.value("net.isr.directed"))
    assert 0 < int(topology.value("net.isr.swi_count")) <= deferred + int(topology.value("net.isr.queued"))
    with pytest.raises(AssertionError, match=r"set net\.isr\.generation to 2009 for hybrid"):
        topology.ask("sysctl", "net.isr.dispatch=hybrid")


def test_loopback_is_always_queued(topology: Topology) -> None:
    topology.boot({"net.isr.generation": "2005", "net.isr.direct": "1"}, [PYTHON, "-c", TO_ITSELF])
    topology.await_line("boot.log", "all are back")
    assert int(topology.value("net.isr.queued")) >= DATAGRAMS
    assert int(topology.value("net.isr.count")) < DATAGRAMS


def test_a_component_that_needs_giant_enables_it_and_logs_it(topology: Topology) -> None:
    topology.boot({**ROUTER, "debug.needsgiant": "ip6 tunnel", "debug.mpsafenet": "1"})
    log = topology.log("boot.log")
    assert "stack: debug.mpsafenet is 0, not 1: ip6 needs Giant\n" in log
    assert "stack: debug.mpsafenet is 0, not 1: tunnel needs Giant\n" in log
    assert 'stack: debug.mpsafenet="0"\t# not "1": ip6 needs Giant, tunnel needs Giant\n' in log
    assert topology.value("debug.mpsafenet_forced_by") == "ip6 tunnel"


def test_ipv6_that_is_not_mp_safe_is_never_dispatched_directly(topology: Topology) -> None:
    topology.boot({**ROUTER, "if.tap0.inet6": "2001:db8::2/64", "net.isr.proto.ip6.mpsafe": "0"})
    topology.on("left", "ping", "-n", "-c", "3", "-i", "0.1", "-W", "10", "2001:db8::2")
    output = topology.ask("netstat", "-Q")
    rows = re.findall(r"^\d+ +(ip6?) +\d+ +\d+ +(\d+) +(\d+) +(\d+) ", output, re.MULTILINE)
    sums = {name: [sum(int(row[i]) for row in rows if row[0] == name) for i in (1, 2, 3)] for name in ("ip", "ip6")}
    direct, hybrid, queued = sums["ip6"]
    assert direct == hybrid == 0
    assert queued >= 3
    assert re.search(r"^ip6 +flow +deferred +needed$", output, re.MULTILINE)


def test_a_driver_that_needs_giant_is_sent_to_by_its_thread(topology: Topology) -> None:
    topology.boot({**ROUTER, "if.tap0.needsgiant": "1"})
    send_a_stream(topology)
    assert int(topology.value("if.tap0.stats.ogiant")) > 0
    assert "if.tap1.stats.ogiant" not in topology.ask("sysctl", "-a")


def test_threads_are_placed_and_scheduled_as_configured(topology: Topology) -> None:
    here = sorted(os.sched_getaffinity(0))
    child = topology.boot({"machine.placement": "pinned", "machine.sched": "batch"})
    threads = stack_threads(child.pid)
    placed = {cpus_of(threads[name]) for name in threads if name.startswith("swi: ")}
    assert placed <= {str(cpu) for cpu in here}
    assert len(placed) == min(2, len(here)), "clock and netisr have a CPU each"
    assert os.sched_getscheduler(int(threads["swi: clock"].name)) == os.SCHED_BATCH


def test_up_mode_keeps_the_program_and_the_stack_on_one_cpu(topology: Topology) -> None:
    last = str(max(os.sched_getaffinity(0)))
    child = topology.boot({"kern.smp.disabled": "1", "machine.cpus": last}, ["netserver", "-D", "-f", "-4"])
    topology.await_line("boot.log", "Starting netserver")
    assert {cpus_of(task) for task in stack_threads(child.pid).values()} == {last}
    report = topology.on("left", "netperf", "-H", "10.99.0.2", "-t", "TCP_RR", "-l", "1", "-P", "0", "-v", "0")
    assert float(report.split()[-1]) > 0


def test_smt_0_uses_a_thread_of_each_core(topology: Topology) -> None:
    topology.boot({"machine.smt": "0", "net.isr.maxthreads": "-1"})
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text(encoding="ascii") if siblings.exists() else str(cpu))
    workers = {line.split()[0] for line in topology.ask("netstat", "-Q").splitlines() if line[:1].isdigit()}
    assert len(workers) == len(cores)


def test_the_boot_counts_the_cpus_that_are_used(topology: Topology) -> None:
    last = str(max(os.sched_getaffinity(0)))
    topology.boot({"machine.cpus": last})
    assert topology.log("boot.log").startswith("stack: reference network stack, 1 CPU\n")


@pytest.mark.parametrize(
    ("how", "line", "listed"),
    [
        (
            {"net.isr.proto.ip6.mpsafe": "0"},
            "net.isr.proto.ip6.dispatch is deferred, not default: its handler runs under Giant",
            'net.isr.proto.ip6.dispatch="deferred"\t# not "default": its handler runs under Giant',
        ),
        (
            {"kern.smp.disabled": "1"},
            "lock.spin_limit is 0, not 100: on one CPU no owner runs while another thread spins",
            'lock.spin_limit="0"\t# not "100": on one CPU no owner runs while another thread spins',
        ),
        (
            {"net.inet.tcp.pcbtable": "groups-thread", "net.isr.maxthreads": "3"},
            "net.inet.tcp.pcbgroups is 3, not 128: each worker has a group",
            'net.inet.tcp.pcbgroups="3"\t# not "128": each worker has a group',
        ),
    ],
    ids=["under Giant", "one CPU", "groups"],
)
def test_what_overrules_a_tunable_is_reported_and_listed(
    topology: Topology, how: dict[str, str], line: str, listed: str
) -> None:
    topology.boot(how)
    log = topology.log("boot.log")
    assert log.count(f"stack: {line}\n") == 1
    assert log.count(f"stack: {listed}\n") == 1
    name, _, rest = line.partition(" is ")
    assert topology.value(name) == rest.partition(",")[0]
