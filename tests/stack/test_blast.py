# SPDX-License-Identifier: BSD-2-Clause
"""netblast and netreceive: the same programs on Linux and on the stack, and their reports of losses."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.stack.topology import Topology, run

PORT = "5601"
STACK, RIGHT = "10.99.0.2", "10.99.1.1"
ROUTER = {"if.tap1.inet": "10.99.1.2/24", "net.inet.ip.forwarding": "1"}


class Counted(NamedTuple):
    sent: int
    received: int
    lost: int


def _blast(topology: Topology, log: str, address: str, *options: str) -> Counted:
    """Blast for a second at a ready netreceive, which prints its counts at the end."""
    topology.await_line(log, "ready")
    output = topology.on("left", f"{topology.installed.prefix}/bin/netblast", "-t", "1", *options, address, PORT)
    topology.await_line(log, "\nreceived: ")
    sent = re.match(r"sent: (\d+) seconds: 1\.\d+ rate: \d+ datagrams/s\n", output)
    received = re.search(r"^received: (\d+) .* lost: (-?\d+)$", topology.log(log), re.MULTILINE)
    assert sent is not None
    assert received is not None
    return Counted(int(sent[1]), int(received[1]), int(received[2]))


def _receiver(topology: Topology) -> list[str]:
    # Long enough for a blast that begins late on a slow machine.
    return [f"{topology.installed.prefix}/bin/netreceive", "-t", "3", PORT]


def test_the_stack_receives_what_linux_sends(topology: Topology) -> None:
    topology.boot({}, _receiver(topology))
    counted = _blast(topology, "boot.log", STACK, "-r", "2000", "-n", "4")
    assert 500 < counted.sent < 2500
    assert counted == Counted(counted.sent, counted.sent, 0)


def test_a_router_that_loses_is_found_out(topology: Topology) -> None:
    topology.boot({**ROUTER, "if.tap0.impair.loss": "200000"})
    topology.start("right", *_receiver(topology), log="receive.log")
    # Link addresses are resolved from here on; these packets can be lost like all others.
    output = topology.on("left", "ping", "-q", "-c", "1", "-i", "0.2", "-w", "20", RIGHT)
    assert re.search(r" [1-9]\d* received", output), output
    counted = _blast(topology, "receive.log", RIGHT, "-r", "2000", "-s", "100")
    assert counted.lost > counted.sent / 20
    # Losses after the last received datagram cannot be known.
    assert counted.sent - 60 < counted.received + counted.lost <= counted.sent


def test_datagrams_too_small_for_a_number_are_counted_all_the_same(topology: Topology) -> None:
    topology.boot({}, _receiver(topology))
    counted = _blast(topology, "boot.log", STACK, "-r", "500", "-s", "3")
    assert counted.lost == 0
    assert 0 < counted.received <= counted.sent


def test_the_stack_sends(topology: Topology) -> None:
    topology.start("left", *_receiver(topology), log="receive.log")
    topology.await_line("receive.log", "ready")
    blast = [f"{topology.installed.prefix}/bin/netblast", "-t", "1", "-r", "2000", "10.99.0.1", PORT]
    topology.boot({}, blast)
    topology.await_line("receive.log", "\nreceived: ")
    assert re.search(r"^received: [1-9]\d+ .* lost: 0$", topology.log("receive.log"), re.MULTILINE)


@pytest.mark.parametrize("family", [4, 6])
def test_one_command_reports_both_ends(topology: Topology, family: int) -> None:
    address, everywhere = (STACK, "0.0.0.0") if family == 4 else ("2001:db8::2", "::")  # noqa: S104 - in a namespace
    tunables = {"if.tap0.inet6": "2001:db8::2/64", "net.inet6.ip6.dad_count": "0"}
    program = f"{topology.installed.prefix}/bin/netreceive"
    topology.boot(tunables, [program, "-a", everywhere, "-c", PORT, "-i", "60", PORT])
    topology.await_line("boot.log", "ready")
    blast = (f"{topology.installed.prefix}/bin/netblast", "-c", PORT, "-r", "2000", "-t", "0.3")
    for _ in range(2):
        output = topology.on("left", *blast, address, PORT)
        both = re.fullmatch(
            r"sent: (\d+) seconds: 0\.\d+ rate: \d+ datagrams/s\n"
            r"received: (\d+) seconds: 0\.\d+ rate: \d+ datagrams/s lost: 0\n",
            output,
        )
        assert both is not None, output
        assert int(both[1]) == int(both[2]) > 100
    with pytest.raises(AssertionError, match="netblast: connect: "):
        topology.on("left", *blast[:2], "1", *blast[3:], address, PORT)


def test_a_search_ends_at_tried_rates_or_reports_total_loss(topology: Topology) -> None:
    program = f"{topology.installed.prefix}/bin/netreceive"
    topology.boot({}, [program, "-c", PORT, "-i", "60", PORT])
    topology.await_line("boot.log", "ready")
    blast = (f"{topology.installed.prefix}/bin/netblast", "-f", "-c", PORT, "-t", "0.1")
    with pytest.raises(AssertionError, match=r"more than 0\.5 % was lost at every rate, even at \d+ datagrams/s"):
        topology.on("left", *blast, STACK, "5999")
    output = topology.on("left", *blast, STACK, PORT)
    *trials, _, _ = output.splitlines()
    assert re.match(r"trial: [1-9]\d* datagrams/s lost: \d+ of [1-9]\d*, \d+\.\d+ %$", trials[0])
    rates = {name: float(rate) for name, rate in re.findall(r"^(\wdr): (\d+) datagrams/s, ", output, re.MULTILINE)}
    assert 0 < rates["ndr"] <= rates["pdr"]
    assert {f"{rate:.0f}" for rate in rates.values()} <= {trial.split()[1] for trial in trials}


def _loads(output: str) -> list[dict[str, float]]:
    """The offered load, its result, and round-trip times at each load."""
    line = re.compile(
        r"^load: (?P<load>\d+) % rate: (?P<rate>\d+) datagrams/s lost: (?P<lost>\d+) of \d+ behind: \d+ "
        r"probes: (?P<back>\d+) of (?P<sent>\d+) "
        r"p50: (?P<p50>\S+) p90: (?P<p90>\S+) p99: (?P<p99>\S+) max: (?P<max>\S+) us$",
        re.MULTILINE,
    )
    return [{name: float(number) for name, number in found.groupdict().items()} for found in line.finditer(output)]


def test_round_trips_are_timed_at_shares_of_what_is_not_lost(topology: Topology) -> None:
    program = f"{topology.installed.prefix}/bin/netreceive"
    topology.boot({}, [program, "-c", PORT, "-i", "60", PORT])
    topology.await_line("boot.log", "ready")
    blast = (f"{topology.installed.prefix}/bin/netblast", "-l", "-c", PORT, "-n", "3", "-t", "0.1", STACK, PORT)
    loads = _loads(output := topology.on("left", *blast))
    assert [load["load"] for load in loads] == [25, 50, 75, 90], output
    rates = [load["rate"] for load in loads]
    assert 0 < rates[0] < max(rates)  # a machine whose CPUs are taken away may not reach each higher one
    for load in loads:
        assert 0 < load["back"] <= load["sent"]
        assert 0 < load["p50"] <= load["p90"] <= load["p99"] <= load["max"] <= 1e6


def test_a_probe_that_does_not_come_back_counts_as_a_second(topology: Topology) -> None:
    program = f"{topology.installed.prefix}/bin/netreceive"
    topology.boot({}, [program, "-c", PORT, "-i", "60", PORT])
    topology.await_line("boot.log", "ready")
    blast = (f"{topology.installed.prefix}/bin/netblast", "-l", "-c", PORT, "-t", "0.5", STACK, PORT)
    topology.on("left", "tc", "qdisc", "add", "dev", "data0", "clsact")
    try:  # of the packets to left, which are the replies, those with bit 8 in their number are lost
        udp = ("match", "ip", "protocol", "17", "0xff", "match", "u8", "1", "1", "at", "42")
        astray = ("action", "mirred", "egress", "redirect", "dev", "lo")
        topology.on("left", "tc", "filter", "add", "dev", "data0", "ingress", "protocol", "ip", "u32", *udp, *astray)
        loads = _loads(output := topology.on("left", *blast))
    finally:
        topology.on("left", "tc", "qdisc", "del", "dev", "data0", "clsact")
    assert len(loads) == 4, output
    for load in loads:
        assert 0 < load["back"] < load["sent"]
        assert load["p90"] == load["p99"] == load["max"] == 1e6


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("netblast", "10.0.0.1"), "usage: netblast"),
        (("netblast", "-s", "9000", "10.0.0.1", "9"), "-s: '9000' is not an integer from 0 to 1472"),
        (("netblast", "-f", "10.0.0.1", "9"), "-f, -l: with -c and without -r"),
        (("netblast", "-f", "-c", "9", "-r", "5", "10.0.0.1", "9"), "-f, -l: with -c and without -r"),
        (("netblast", "-f", "-l", "-c", "9", "10.0.0.1", "9"), "usage: netblast"),
        (("netblast", "-l", "-c", "9", "-s", "8", "10.0.0.1", "9"), "-s: '8' is not an integer from 16 to 1472"),
        (("netblast", "-l", "-c", "9", "-t", "3600", "10.0.0.1", "9"), "-t: '3600' is not in 0.01 to 600"),
        (("netblast", "nowhere", "9"), "'nowhere' port '9' is not an address"),
        (("netreceive",), "usage: netreceive"),
        (("netreceive", "-i", "0", "9"), "-i: '0' is not in 0.1 to 86400"),
        (("netreceive", "-a", "nowhere", "9"), "'nowhere' port '9' is not an address"),
    ],
)
def test_they_explain_themselves(topology: Topology, words: tuple[str, ...], reason: str) -> None:
    program, *arguments = words
    with pytest.raises(AssertionError, match=f"(?s)gave 64: .*{reason}"):
        run(f"{topology.installed.prefix}/bin/{program}", *arguments)
