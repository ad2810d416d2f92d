# SPDX-License-Identifier: BSD-2-Clause
"""The drivers of the host's interfaces: TAP devices, packet sockets and AF_XDP sockets."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.stack.test_programs import LINUX, STACK, STREAM, iperf3, script
from tests.stack.topology import DRIVERS, PACKET, PATIENCE, PYTHON, TAP, XDP, Driver, Topology, run

EACH = pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
HARMS = {"loss": "10000", "dup": "10000", "reorder": "10000", "corrupt": "10000", "delay": "500"}


UNUSED = {"fill": 2048, "receive": 0, "free": 1024, "send": 0}


def _impair(driver: Driver, *what: str) -> dict[str, str]:
    return {f"if.{driver.interface}0.impair.{name}": HARMS[name] for name in what}


def _frames(topology: Topology, queue: int) -> dict[str, int]:
    words = topology.value(f"if.data0.frames.{queue}").split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


def _check_frames(topology: Topology, queues: int) -> None:
    """Each frame of an AF_XDP socket is where an unused one belongs, as soon as the last packet has been handled."""
    until = time.monotonic() + PATIENCE
    for queue in range(queues):
        while (frames := _frames(topology, queue)) != UNUSED:
            assert time.monotonic() < until, frames
            time.sleep(0.05)


def _exchange(topology: Topology, driver: Driver, tunables: dict[str, str]) -> None:
    """Send a stream each way through the stack, checked byte for byte."""
    program = script(topology, "bytestream.py")
    topology.boot(tunables, [PYTHON, program, "listen", "5000", str(STREAM)], driver)
    topology.await_line("boot.log", "listening")
    output = topology.on("left", PYTHON, program, "connect", STACK, "5000", str(STREAM), timeout=PATIENCE)
    assert output.startswith("verified ")
    topology.await_line("boot.log", output)


@EACH
def test_it_answers(topology: Topology, driver: Driver) -> None:
    topology.prepare(driver)
    topology.boot({}, driver=driver)
    for size in ("0", "1000", "1472", "4000", "60000"):
        output = topology.on("left", "ping", "-n", "-c", "3", "-i", "0.3", "-s", size, STACK, check=False)
        assert "3 received" in output, output
    assert topology.value(f"if.{driver.interface}0.driver") == ("" if driver is TAP else driver.name)
    assert topology.value(f"if.{driver.interface}0.stats.ierrors") == "0"
    assert topology.value(f"if.{driver.interface}0.offload") == ("0" if driver is XDP else "2")


@EACH
@pytest.mark.parametrize("harm", [*((name,) for name in HARMS), tuple(HARMS)])
def test_a_stream_arrives_whole_whatever_the_injector_does(
    topology: Topology, driver: Driver, harm: tuple[str, ...]
) -> None:
    topology.prepare(driver)
    _exchange(topology, driver, _impair(driver, *harm))
    if driver is XDP:
        _check_frames(topology, 1)


@EACH
def test_many_streams_share_two_queues(topology: Topology, driver: Driver) -> None:
    topology.prepare(driver, queues=2)
    tunables = {f"if.{driver.interface}0.queues": "2", **_impair(driver, "loss")}
    topology.boot(tunables, ["iperf3", "-s", "--forceflush"], driver)
    topology.await_line("boot.log", "listening")
    for reverse in ((), ("-R",)):
        report = json.loads(iperf3(topology, STACK, "-n", "50M", "-P", "8", *reverse))
        assert report["end"]["sum_sent"]["bytes"] >= 50_000_000, report
    if driver is XDP:
        _check_frames(topology, 2)


@EACH
def test_a_router_between_two_hosts(topology: Topology, driver: Driver) -> None:
    topology.prepare(driver)
    topology.boot({**driver.address(1), "net.inet.ip.forwarding": "1"}, driver=driver)
    program = script(topology, "bytestream.py")
    topology.start("right", PYTHON, program, "listen", "5000", str(STREAM), log="right.log")
    topology.await_line("right.log", "listening")
    before = topology.buffers()
    output = topology.on("left", PYTHON, program, "connect", "10.99.1.1", "5000", str(STREAM), timeout=PATIENCE)
    assert output.startswith("verified ")
    assert int(topology.value("net.inet.ip.stats.forward")) > 100
    topology.await_buffers(before, margin=19)


def test_the_host_has_its_frames_back_afterwards(topology: Topology) -> None:
    topology.prepare(XDP)
    child = topology.boot({}, driver=XDP)
    assert "prog/xdp" in run("ip", "-n", f"{topology.name}-dut", "link", "show", "data0")
    assert topology.stop(child) == 0
    assert "prog/xdp" not in run("ip", "-n", f"{topology.name}-dut", "link", "show", "data0")
    topology.boot({})
    assert "3 received" in topology.on("left", "ping", "-n", "-c", "3", "-i", "0.3", STACK, check=False)


NOT_ROOT = Driver("xdp", capabilities=("net_raw",))


@pytest.mark.parametrize(
    ("driver", "tunables", "reason"),
    [
        (PACKET, {"if.data9.driver": "packet"}, r"data9: No such device; check that it is "),
        (XDP, {"if.data9.driver": "xdp"}, r"data9: interface: No such device; check that it is "),
        (TAP, {"if.data0.driver": "pocket"}, r"unknown driver 'pocket'; use tap, packet, xdp or mem"),
        (TAP, {"if.data0.inet": "10.99.0.2/24"}, r"no driver for interface 'data0'; put if.data0.driver="),
        (TAP, {"if.data0.driver": "packet"}, r"data0: Operation not permitted; .* this user has CAP_NET_RAW"),
        (NOT_ROOT, {}, r"data0: .* not permitted; this user needs the capabilities CAP_NET_RAW, CAP_NET_ADMIN and"),
        (XDP, {"if.data0.queues": "2"}, r"data0: socket: Invalid argument; check its number of queues"),
        (XDP, {"if.data0.mtu": "9000"}, r"data0: mtu 9000: the max of this driver is 1778"),
    ],
)
def test_what_cannot_be_is_explained(topology: Topology, driver: Driver, tunables: dict[str, str], reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        topology.boot(tunables, driver=driver)


def test_an_interface_belongs_to_one_program(topology: Topology) -> None:
    topology.boot({}, driver=XDP)
    with pytest.raises(
        AssertionError, match=r"data0: socket: Device or resource busy; another program uses its queues"
    ):
        topology.boot({}, driver=XDP)


@EACH
def test_a_program_calls_out(topology: Topology, driver: Driver) -> None:
    topology.prepare(driver)
    program = script(topology, "bytestream.py")
    topology.start("left", PYTHON, program, "listen", "5000", str(STREAM), log="peer.log")
    topology.await_line("peer.log", "listening")
    child = topology.boot({}, [PYTHON, program, "connect", LINUX, "5000", str(STREAM)], driver)
    assert child.wait(timeout=PATIENCE) == 0, topology.log("boot.log")
    assert re.search(r"^verified ", topology.log("boot.log"), re.MULTILINE)
