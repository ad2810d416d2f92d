# SPDX-License-Identifier: BSD-2-Clause
"""netblast and netreceive: the same programs on Linux and on the stack, and what they say was lost."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.stack.topology import PYTHON, Topology, run

PORT = "5601"
STACK, RIGHT = "10.99.0.2", "10.99.1.1"
ROUTER = {"if.tap1.inet": "10.99.1.2/24", "net.inet.ip.forwarding": "1"}


class Counted(NamedTuple):
    sent: int
    received: int
    lost: int


def _blast(topology: Topology, log: str, address: str, *options: str) -> Counted:
    """Blasts for a second at a netreceive that is ready, and that says at its end what it got."""
    topology.await_line(log, "ready")
    said = topology.on("left", f"{topology.installed.prefix}/bin/netblast", "-t", "1", *options, address, PORT)
    topology.await_line(log, "\nreceived: ")
    sent = re.match(r"sent: (\d+) seconds: 1\.\d+ rate: \d+ datagrams/s\n", said)
    received = re.search(r"^received: (\d+) .* lost: (-?\d+)$", topology.said(log), re.MULTILINE)
    assert sent is not None
    assert received is not None
    return Counted(int(sent[1]), int(received[1]), int(received[2]))


def _receiver(topology: Topology) -> list[str]:
    # Long enough for a blast that a slow machine began late.
    return [f"{topology.installed.prefix}/bin/netreceive", "-t", "3", PORT]


def test_the_stack_receives_what_linux_sends(topology: Topology) -> None:
    topology.boot({}, _receiver(topology))
    counted = _blast(topology, "boot.log", STACK, "-r", "2000", "-n", "4")
    assert 500 < counted.sent < 2500
    assert counted == Counted(counted.sent, counted.sent, 0)


def test_a_router_that_loses_is_found_out(topology: Topology) -> None:
    topology.boot({**ROUTER, "if.tap0.impair.loss": "200000"})
    topology.start("right", *_receiver(topology), log="receive.log")
    # Link addresses are known from here on, which get lost like all else.
    said = topology.on("left", "ping", "-q", "-c", "1", "-i", "0.2", "-w", "20", RIGHT)
    assert re.search(r" [1-9]\d* received", said), said
    counted = _blast(topology, "receive.log", RIGHT, "-r", "2000", "-s", "100")
    assert counted.lost > counted.sent / 20
    # Those that were lost behind the last one that came, nobody can know.
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
    assert re.search(r"^received: [1-9]\d+ .* lost: 0$", topology.said("receive.log"), re.MULTILINE)


@pytest.mark.parametrize("family", [4, 6])
def test_one_command_says_what_both_ends_saw(topology: Topology, family: int) -> None:
    address, everywhere = (STACK, "0.0.0.0") if family == 4 else ("2001:db8::2", "::")  # noqa: S104 - in a namespace
    tunables = {"if.tap0.inet6": "2001:db8::2/64", "net.inet6.ip6.dad_count": "0"}
    program = f"{topology.installed.prefix}/bin/netreceive"
    topology.boot(tunables, [program, "-a", everywhere, "-c", PORT, "-i", "60", PORT])
    topology.await_line("boot.log", "ready")
    blast = (f"{topology.installed.prefix}/bin/netblast", "-c", PORT, "-r", "2000", "-t", "0.3")
    for _ in range(2):
        said = topology.on("left", *blast, address, PORT)
        both = re.fullmatch(
            r"sent: (\d+) seconds: 0\.\d+ rate: \d+ datagrams/s\n"
            r"received: (\d+) seconds: 0\.\d+ rate: \d+ datagrams/s lost: 0\n",
            said,
        )
        assert both is not None, said
        assert int(both[1]) == int(both[2]) > 100
    with pytest.raises(AssertionError, match="netblast: connect: "):
        topology.on("left", *blast[:2], "1", *blast[3:], address, PORT)


def test_a_search_ends_at_rates_that_were_tried_or_says_that_everything_is_lost(topology: Topology) -> None:
    program = f"{topology.installed.prefix}/bin/netreceive"
    topology.boot({}, [program, "-c", PORT, "-i", "60", PORT])
    topology.await_line("boot.log", "ready")
    blast = (f"{topology.installed.prefix}/bin/netblast", "-f", "-c", PORT, "-t", "0.1")
    with pytest.raises(AssertionError, match=r"more than 0\.5 % was lost at every rate, even at \d+ datagrams/s"):
        topology.on("left", *blast, STACK, "5999")
    said = topology.on("left", *blast, STACK, PORT)
    *trials, _, _ = said.splitlines()
    assert re.match(r"trial: [1-9]\d* datagrams/s lost: \d+ of [1-9]\d*, \d+\.\d+ %$", trials[0])
    rates = {name: float(rate) for name, rate in re.findall(r"^(\wdr): (\d+) datagrams/s, ", said, re.MULTILINE)}
    assert 0 < rates["ndr"] <= rates["pdr"]
    assert {f"{rate:.0f}" for rate in rates.values()} <= {trial.split()[1] for trial in trials}


def _timed(topology: Topology, address: str, *options: str) -> list[dict[str, str]]:
    """What `netblast -l` says of each share of the highest rate without loss."""
    program = f"{topology.installed.prefix}/bin/netblast"
    said = topology.on("left", program, "-l", "-c", PORT, "-t", "0.2", *options, address, PORT)
    words = r"(?P<share>\d+) % rate: (?P<rate>[1-9]\d*) datagrams/s lost: \d+ of \d+ behind: \d+"
    probes = r"probes: (?P<back>[1-9]\d*) of (?P<probes>\d+)"
    times = r"p50: (?P<p50>\S+) p90: (?P<p90>\S+) p99: (?P<p99>\S+) max: (?P<max>\S+) us"
    loads = [found.groupdict() for found in re.finditer(f"^load: {words} {probes} {times}$", said, re.MULTILINE)]
    assert [load["share"] for load in loads] == ["25", "50", "75", "90"], said
    assert re.search(r"^ndr: [1-9]\d* datagrams/s, ", said, re.MULTILINE)
    return loads


@pytest.mark.parametrize("family", [4, 6])
def test_probes_come_back_and_say_how_long_they_took(topology: Topology, family: int) -> None:
    address, everywhere = (STACK, "0.0.0.0") if family == 4 else ("2001:db8::2", "::")  # noqa: S104 - in a namespace
    tunables = {"if.tap0.inet6": "2001:db8::2/64", "net.inet6.ip6.dad_count": "0"}
    topology.boot(tunables, [f"{topology.installed.prefix}/bin/netreceive", "-a", everywhere, "-c", PORT, PORT])
    topology.await_line("boot.log", "ready")
    idle = _timed(topology, address)[0]
    # A quarter of what is not lost is little: what a machine that is busy otherwise loses all the same is not much.
    assert int(idle["back"]) > 0.9 * int(idle["probes"])
    assert 0 < float(idle["p50"]) <= float(idle["p90"]) <= float(idle["p99"])


def test_probes_that_do_not_come_back_are_told(topology: Topology) -> None:
    # Lost is the answer to the first datagram, which is a probe: of the load itself nothing is.
    topology.on("left", "ip", "link", "add", "down0", "type", "veth", "peer", "name", "down1")
    topology.on("left", "tc", "qdisc", "add", "dev", "data0", "clsact")
    answer, first = ("0x6e620002", "0xffffffff", "at", "28"), ("0", "0xffffffff", "at", "40")
    match = ("protocol", "ip", "u32", "match", "u32", *answer, "match", "u32", *first)
    away = ("action", "mirred", "egress", "redirect", "dev", "down0")
    topology.on("left", "tc", "filter", "add", "dev", "data0", "ingress", *match, *away)
    topology.boot({}, [f"{topology.installed.prefix}/bin/netreceive", "-c", PORT, PORT])
    topology.await_line("boot.log", "ready")
    for load in _timed(topology, STACK):
        assert 0 < int(load["back"]) < int(load["probes"])
        assert 0 < float(load["p50"]) <= float(load["max"])


def test_only_probes_are_answered_and_no_answer_is(topology: Topology) -> None:
    topology.boot({}, _receiver(topology))
    topology.await_line("boot.log", "ready")
    send = """
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
s.connect((sys.argv[1], int(sys.argv[2])))
def asked(magic, kind, length=18):
    s.send(struct.pack('>HHLLL', magic, kind, 7, 1, 2).ljust(length, b'x')[:length])
    try:
        return s.recv(2000)
    except TimeoutError:
        return b''
print([asked(*words) for words in [(0x6e62, 0), (0x6e62, 2), (0x6e62, 3), (0x6e63, 1), (0x6e62, 1, 15)]])
print(asked(0x6e62, 1).hex())
"""
    said = topology.on("left", PYTHON, "-c", send, STACK, PORT).splitlines()
    assert said == [str([b""] * 5), "6e620002" + "00000007" + "00000001" + "00000002" + "7878"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("netblast", "10.0.0.1"), "usage: netblast"),
        (("netblast", "-s", "9000", "10.0.0.1", "9"), "-s: '9000' is no whole number from 0 to 1472"),
        (("netblast", "-f", "10.0.0.1", "9"), "-f, -l: with -c and without -r"),
        (("netblast", "-f", "-c", "9", "-r", "5", "10.0.0.1", "9"), "-f, -l: with -c and without -r"),
        (("netblast", "-l", "10.0.0.1", "9"), "-f, -l: with -c and without -r"),
        (("netblast", "-l", "-c", "9", "-r", "5", "10.0.0.1", "9"), "-f, -l: with -c and without -r"),
        (("netblast", "-l", "-f", "-c", "9", "10.0.0.1", "9"), "usage: netblast"),
        (("netblast", "-l", "-c", "9", "-s", "15", "10.0.0.1", "9"), "-s: '15' is no whole number from 16 to 1472"),
        (("netblast", "-l", "-c", "9", "-t", "601", "10.0.0.1", "9"), "-t: '601' is not in 0.01 to 600"),
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
