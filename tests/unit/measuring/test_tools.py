# SPDX-License-Identifier: BSD-2-Clause
"""Parsing of the tools' output. The fixtures are outputs of netperf 2.7.0, iperf3 3.12 and tcpbench 1.01 between two
namespaces.
"""

import json
import math
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.lab.origins import Origin
from perfweb.measuring import tools
from perfweb.measuring.tools import ToolError, simstack
from perfweb.runs.catalogue import LOADS, MEASURES, SIMULATED_COSTS, Measure
from playbooks.module_utils.tunnels import TUNNELS

FIXTURES = Path(__file__).parent / "fixtures"
BY_NAME = {measure.name: measure for measure in MEASURES}
TCPCONNECT = "connections: 9120 seconds: 1.000 rate: 9120.0 connections/s\n"
UNIXBENCH = "21734 transactions/s\n1.98 CPU seconds\n"
NETBLAST = (
    "sent: 800000 seconds: 1.000 rate: 800000 datagrams/s\n"
    "received: 500000 seconds: 1.000 rate: 500000 datagrams/s lost: 300000\n"
)
SEARCH = (
    "trial: 81233 datagrams/s lost: 17691 of 40896, 43.259 %\n"
    "trial: 39538 datagrams/s lost: 4839 of 19848, 24.380 %\n"
    "pdr: 12697 datagrams/s, too much is lost at 12866\n"
    "ndr: 12053 datagrams/s, too much is lost at 12102\n"
)
LOADED = (
    "trial: 181175 datagrams/s lost: 12018 of 93056, 12.915 %\n"
    "ndr: 78004 datagrams/s, too much is lost at 78882\n"
    "load: 25 % rate: 19180 datagrams/s lost: 0 of 9607 behind: 391 probes: 601 of 601 "
    "p50: 28.1 p90: 90.8 p99: 268.9 max: 3529.3 us\n"
    "load: 50 % rate: 38999 datagrams/s lost: 0 of 19500 behind: 159 probes: 975 of 975 "
    "p50: 14.1 p90: 33.9 p99: 1076.2 max: 4124.9 us\n"
    "load: 75 % rate: 58502 datagrams/s lost: 0 of 29251 behind: 480 probes: 976 of 976 "
    "p50: 12.4 p90: 26.5 p99: 3145.9 max: 3804.2 us\n"
    "load: 90 % rate: 70202 datagrams/s lost: 0 of 35101 behind: 675 probes: 976 of 976 "
    "p50: 12.9 p90: 176.4 p99: 5947.1 max: 7654.9 us\n"
)
CPUCHECK = "rounds: 109 seconds: 1.000206\n"
SIMSTACK = """{"simulated": true, "machine": "generic", "workload": "forward", "seed": 1, "unit": "packets/s",
 "set": [],
 "runs": [
  {"cpus": 1, "streams": 1, "rate": 3417484.163, "atomics": 34.063, "lines": 0.000, "blocks": 237.317,
   "instructions": 1327.525, "hash": "652a0aad6361af3d"}
]}
"""
UNITS_OF_SIMSTACK = {"throughput": "kilobytes/s", "transactions": "transactions/s", "packets": "packets/s"}
TCPLOAD = "1250000000 bytes/s\n"
RECEIVED = "receive threads: 1, 17.0 % idle\nreceived: 397.00 kpps\nCPU time: 2090.7 ns a packet\n"


def recorded(measure: Measure) -> str:
    outputs = {
        "tcpconnect": TCPCONNECT, "unixbench": UNIXBENCH, "netblast": NETBLAST, "tcpload": TCPLOAD,
        "cpucheck": CPUCHECK,
    }  # fmt: skip
    searches = {"udp.ndr": SEARCH, "udp.loaded": LOADED}
    if measure.name in searches:
        return searches[measure.name]
    if measure.origin == Origin.SIMULATED:
        return SIMSTACK.replace("packets/s", UNITS_OF_SIMSTACK.get(measure.metric, "packets/s"))
    if measure.tool in outputs:
        return outputs[measure.tool]
    many = measure.name.replace("iperf3.100", "iperf3.10")  # the other 300 KB have no other form
    return (FIXTURES / f"{many}.txt").read_text(encoding="utf-8")


def both_ways(rate: object) -> str:
    """A report with a rate of the reverse direction."""
    ways = {"sum_received": 5, "sum_received_bidir_reverse": rate}
    return json.dumps({"end": {name: {"bits_per_second": rate} for name, rate in ways.items()}})


def datagrams(**fields: object) -> str:
    """A report of UDP with these values."""
    return json.dumps({"end": {"sum_received": {"bits_per_second": 5, "seconds": 1, **fields}}})


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_every_measure_reads_what_its_tool_printed(measure: Measure) -> None:
    values = {value.metric: value for value in tools.parse(measure, recorded(measure))}
    primary = values[measure.metric]
    lower = {"cpu", "latency.p90.75", *SIMULATED_COSTS}
    assert primary.direction == ("lower" if measure.metric in lower else "higher")
    assert primary.value > 0
    assert all(value.direction == "lower" for name, value in values.items() if name.startswith("latency."))


def test_netperf_values_and_units() -> None:
    values = tools.parse(
        BY_NAME["tcp.rr"], "THROUGHPUT=15102.28\nTHROUGHPUT_UNITS=Trans/s\nP99_LATENCY=125\nMAX_LATENCY=4711\n"
    )
    assert [(value.metric, value.value, value.unit) for value in values] == [
        ("transactions", 15102.28, "transactions/s"),
        ("latency.p99", 125.0, "us"),
        ("latency.max", 4711.0, "us"),
    ]
    (stream,) = tools.parse(BY_NAME["tcp.stream"], "THROUGHPUT=4231041.59\nTHROUGHPUT_UNITS=10^3bits/s\n")
    assert (stream.value, stream.unit) == (4231041590.0, "bits/s")


def test_netperf_throughput_agrees_with_its_own_byte_count() -> None:
    """netperf 2.7.0 prints bytes for `-f b`; the requested unit must be one that it prints correctly."""
    for name in ("tcp.stream", "udp.stream"):
        argv = tools.command(BY_NAME[name], "10.0.0.2", 1, "")
        assert argv[argv.index("-f") + 1] == "k"


@pytest.mark.parametrize(("address", "option"), [("10.0.0.2", "-4"), ("fd00::2", "-6")])
def test_the_address_selects_the_family_of_a_tool(address: str, option: str) -> None:
    for name in ("tcp.rr", "udp.stream", "iperf3.10"):
        assert option in tools.command(BY_NAME[name], address, 1, "")


def test_no_datagram_needs_a_fragment() -> None:
    for address, header in (("10.0.0.2", 20), ("fd00::2", 40)):
        argv = tools.command(BY_NAME["udp.stream"], address, 1, "")
        assert int(argv[argv.index("-m") + 1]) + 8 + header == 1500


@pytest.mark.parametrize("kind", TUNNELS)
def test_no_datagram_needs_a_fragment_in_or_around_a_tunnel(kind: str) -> None:
    tunnel = TUNNELS[kind]
    for address, header in ((tunnel.address("dut"), 20), (tunnel.address6("dut"), 40)):
        argv = tools.command(BY_NAME["udp.stream"], address.split("/")[0], 1, "")
        assert int(argv[argv.index("-m") + 1]) + 8 + header + 20 + (4 if kind == "gre" else 0) == 1500


def test_percentile_below_the_resolution_is_left_out() -> None:
    values = tools.parse(BY_NAME["tcp.rr"], "THROUGHPUT=5\nTHROUGHPUT_UNITS=Trans/s\nP50_LATENCY=0\n")
    assert [value.metric for value in values] == ["transactions"]


@pytest.mark.parametrize(
    ("name", "output", "problem"),
    [
        ("tcp.rr", "", "no THROUGHPUT"),
        ("tcp.rr", "THROUGHPUT=0.00\nTHROUGHPUT_UNITS=Trans/s\n", "THROUGHPUT is 0"),
        ("tcp.rr", "THROUGHPUT=nan\nTHROUGHPUT_UNITS=Trans/s\n", "THROUGHPUT is nan"),
        ("tcp.rr", "THROUGHPUT=fast\nTHROUGHPUT_UNITS=Trans/s\n", "not a number"),
        ("tcp.rr", "THROUGHPUT=1\nTHROUGHPUT_UNITS=10^3bits/s\n", "no transactions"),
        ("tcp.stream", "THROUGHPUT=1\nTHROUGHPUT_UNITS=10^0bits/s\n", "unknown unit"),
        ("iperf3.1", "", "is not JSON"),
        ("iperf3.1", "[]", "no report"),
        ("iperf3.1", '{"end": {}}', "no sum_received"),
        ("iperf3.1", '{"end": {"sum_received": {"bits_per_second": 0}}}', "bits_per_second is 0"),
        ("iperf3.1", '{"end": {"sum_received": {"bits_per_second": true}}}', "not a number"),
        ("receive", "receive threads: 1, 9.0 % idle\nreceived: 0.00 kpps\n", "no receive threads or no packets"),
        ("receive", RECEIVED.replace("17.0", "0.0"), "idle time is 0"),
        ("receive", RECEIVED.replace("397.00", "0.00"), "rate is 0"),
        ("receive", RECEIVED.replace("2090.7", "-1"), "CPU time is -1"),
        ("tcpconnect", "connections: 0 seconds: 1.0 rate: 0.0 connections/s\n", "number of connections is 0"),
        ("tcpconnect", "connect: Connection refused\n", "no rate"),
        ("unix.mysql.8", "0 transactions/s\n0.00 CPU seconds\n", "rate is 0"),
        ("unix.mysql.8", "inf transactions/s\n", "rate is inf"),
        ("unix.mysql.8", "", "no transactions"),
        ("mem.tcp.1", "0 bytes/s\n", "rate is 0"),
        ("mem.tcp.1", "tcpload: the server closed the connection\n", "no bytes/s"),
        ("iperf3.1.bidirectional", both_ways(0), "sum_received_bidir_reverse.bits_per_second is 0"),
        ("iperf3.1.bidirectional", both_ways("x"), "sum_received_bidir_reverse.bits_per_second is not a number"),
        ("udp.packets.64", datagrams(), "no packets"),
        ("udp.packets.64", datagrams(packets=0, lost_packets=0), "sum_received.packets is 0"),
        ("udp.packets.64", datagrams(packets=9, lost_packets=9), "packets/s is 0"),
        ("udp.packets.64", datagrams(packets=9, lost_packets=-1), "lost_packets is -1 of 9 packets"),
        ("udp.packets.64", datagrams(packets=9, lost_packets=10), "lost_packets is 10 of 9 packets"),
        ("udp.packets.64", datagrams(packets=9, lost_packets=None), "sum_received.lost_packets is not a number"),
        ("udp.packets.64", datagrams(packets=9, lost_packets=0, seconds=0), "sum_received.seconds is 0"),
        ("udp.packets.64", datagrams(packets=9, lost_packets=0, jitter_ms=-1), "jitter_ms is -1"),
        ("tcpbench.1", "  elapsed_ms          bytes         mbps   bwidth \n", "no interval: it did not connect"),
        ("tcpbench.1", "         0       11534336      459.078   11.20% \n", "time of tcpbench's last interval is 0"),
        (
            "tcpbench.1",
            "       200              0        0.000  100.00% \n",
            "number of bytes that tcpbench wrote is 0",
        ),
        ("tcpbench.1", "  104  75497472  5807,498  100,00% \n", "no such line: '104  75497472  5807,498  100,00%'"),
        ("tcpbench.1", "  104  75497472  5807.498  100.00% \n  20", "no such line: '20'"),
        ("tcpbench.1", "  104  -75497472  5807.498  100.00% \n", "no such line"),
        ("tcpbench.1", 2 * "  100  1  1.0  100.00%\nConn: 1\n  200  1  1.0  100.00%\nConn: 1\n", "goes back"),
        ("tcp.rr", "THROUGHPUT=5\nTHROUGHPUT=6\nTHROUGHPUT_UNITS=Trans/s\n", "THROUGHPUT twice, with different values"),
        ("tcp.rr", "THROUGHPUT=1_000\nTHROUGHPUT_UNITS=Trans/s\n", "THROUGHPUT is not a number: '1_000'"),
        ("tcp.rr", "THROUGHPUT=\uff15\nTHROUGHPUT_UNITS=Trans/s\n", "THROUGHPUT is not a number"),
        ("cpu.check", "", "printed no rounds"),
        ("cpu.check", "rounds: 0 seconds: 1.0\n", "number of rounds is 0"),
        ("cpu.check", "rounds: 5 seconds: never\n", "time of the rounds is not a number"),
        ("udp.ndr", SEARCH.replace("ndr: 12053", "ndr: 0"), "ndr is 0"),
        ("udp.ndr", SEARCH.partition("ndr")[0], "printed no ndr"),
        ("udp.ndr", SEARCH.partition("pdr")[0], "printed no rate of what was"),
        ("udp.loaded", LOADED.partition("ndr")[0], "printed no rate of what was"),
        ("udp.loaded", LOADED.partition("load")[0], "printed no latency.p90.75"),
        ("udp.loaded", LOADED.partition("load: 90")[0], "reported loads of 25, 50, 75 %, not of 25, 50, 75, 90 %"),
        ("udp.loaded", LOADED.replace("p90: 26.5", "p90: inf"), "latency.p90.75 is inf"),
        ("udp.loaded", LOADED.replace("p90: 26.5", "p90: -4"), "latency.p90.75 is -4"),
        ("udp.blast", NETBLAST.replace("rate: 500000", "rate: 0"), "rate is 0"),
        ("udp.blast", NETBLAST.replace("rate: 500000", "rate: 600000"), "500000 datagrams in 1 s are others"),
        ("udp.blast", NETBLAST.replace("1.000 rate: 800000", "2.000 rate: 800000"), "are others"),
        ("udp.blast", NETBLAST.replace("sent: 800000", "sent: 499999"), "500000 datagrams were received, but 499999"),
        ("udp.blast", NETBLAST.replace("500000", "0"), "number of datagrams is 0"),
        ("udp.blast", NETBLAST.partition("received")[0], "printed no rate of what was"),
    ],
)
def test_what_a_tool_did_not_deliver_is_an_error(name: str, output: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem.replace("^", r"\^")):
        tools.parse(BY_NAME[name], output)


@pytest.mark.parametrize(
    ("name", "fixture"), [("tcp.rr", "netperf-no-server.txt"), ("iperf3.1", "iperf3-no-server.txt")]
)
def test_no_server(name: str, fixture: str) -> None:
    with pytest.raises(ToolError):
        tools.parse(BY_NAME[name], (FIXTURES / fixture).read_text(encoding="utf-8"))


def test_iperf3_error_is_repeated() -> None:
    with pytest.raises(ToolError, match="unable to connect to server"):
        tools.parse(BY_NAME["iperf3.1"], (FIXTURES / "iperf3-no-server.txt").read_text(encoding="utf-8"))


def test_router_is_passed_by_udp_stream() -> None:
    argv = tools.command(BY_NAME["udp.stream"], "10.0.0.2", 1, "")
    assert argv[argv.index("-R") + 1] == "1"


def test_tcpconnect_comes_from_the_build() -> None:
    assert tools.command(BY_NAME["tcpconnect"], "10.0.0.2", 3, "/prefix") == [
        "/prefix/bin/tcpconnect", "-c", "10.0.0.2", "-p", "5301", "-t", "3",
    ]  # fmt: skip


CONNECTED = "connections: 3000 seconds: 2.000 rate: 1500.0 connections/s\n"


def test_tcpconnect_prints_a_rate() -> None:
    noise = "tcpconnect: listening on port 5301\ntook 1.000 to 2.000 us: 9\n"
    (found,) = tools.parse(BY_NAME["tcpconnect"], noise + CONNECTED)
    assert (found.metric, found.value) == ("connections", 1500.0)


@pytest.mark.parametrize(
    ("name", "output", "reason"),
    [
        ("tcpconnect", "", "printed no rate"),
        ("tcpconnect", CONNECTED.replace("1500.0", "nan"), "rate is nan"),
        ("tcpconnect", CONNECTED.replace("1500.0", "-1500.0"), "rate is -1500"),
        ("tcpconnect", CONNECTED.replace("1500.0", "1500,0"), "write a decimal point"),
        ("tcpconnect", CONNECTED.replace("1500.0", "15000.0"), "are others"),
        ("tcpconnect", CONNECTED.replace("3000", "0"), "connections is 0"),
        ("tcpconnect", CONNECTED.replace("3000", "-3"), "printed no rate"),
        ("tcpconnect", CONNECTED.replace("3000", "30000"), "are others"),
        ("tcpconnect", CONNECTED.replace("2.000", "0.000"), "seconds is 0"),
        ("tcpconnect", CONNECTED.replace("2.000", "20.00"), "are others"),
        ("tcpconnect", CONNECTED.replace("2.000", "."), "seconds is not a number"),
        ("tcpconnect", CONNECTED * 2, "printed rate 2 times"),
        ("tcpconnect", CONNECTED + CONNECTED.replace("3000", "3002"), "output of several calls"),
        ("tcpconnect", CONNECTED.replace("connections/s", "kconnections/s"), "printed no rate"),
        ("mem.tcp.1", "5 bytes/s\n6 bytes/s\n", "printed bytes/s 2 times"),
        ("unix.mysql.8", "5 transactions/s\n6 transactions/s\n", "printed transactions 2 times"),
        ("udp.ndr", "ndr: 5 datagrams/s\nndr: 6 datagrams/s\npdr: 7 datagrams/s\n", "printed a rate twice"),
    ],
)
def test_a_rate_is_printed_once_and_is_that_of_its_count_and_time(name: str, output: str, reason: str) -> None:
    with pytest.raises(ToolError, match=re.escape(reason)):
        tools.parse(BY_NAME[name], output)


def test_the_options_of_unixbench_match_the_name_of_the_measure() -> None:
    assert tools.command(BY_NAME["unix.mysql.11"], "10.0.0.2", 3, "/prefix") == [
        "/prefix/bin/unixbench", "-c", "10.0.0.2", "-p", "5302", "-w", "mysql", "-n", "11", "-t", "3",
    ]  # fmt: skip


def test_tools_of_the_stack_get_streams_and_ports() -> None:
    assert tools.command(BY_NAME["mem.tcp.100"], "10.0.0.2", 3, "/prefix") == [
        "/prefix/bin/tcpload", "ask", "in", "-n", "100", "-t", "3", "10.0.0.2", "5304",
    ]  # fmt: skip
    assert tools.command(BY_NAME["udp.blast"], "fd00::2", 3, "/prefix") == [
        "/prefix/bin/netblast", "-c", "5303", "-t", "3", "fd00::2", "5303",
    ]  # fmt: skip
    assert tools.command(BY_NAME["iperf3.100"], "10.0.0.2", 1, "")[-2:] == ["-P", "100"]
    for name, mode in (("udp.ndr", "-f"), ("udp.loaded", "-l")):
        assert tools.command(BY_NAME[name], "10.0.0.2", 3, "/prefix")[:2] == ["/prefix/bin/netblast", mode]


@pytest.mark.parametrize(
    ("name", "address", "words"),
    [
        ("iperf3.10.reverse", "10.0.0.2", ["-P", "10", "-R"]),
        ("iperf3.1.bidirectional", "10.0.0.2", ["-P", "1", "--bidir"]),
        ("udp.packets.64", "10.0.0.2", ["-u", "-b", "0", "-l", "64"]),
        ("udp.packets.mtu.reverse", "10.0.0.2", ["-u", "-b", "0", "-l", "1472", "-R"]),
        ("udp.packets.mtu", "fd00::2", ["-u", "-b", "0", "-l", "1452"]),
        ("tcpbench.10", "fd00::2", ["-n", "10", "fd00::2"]),
        ("tcp.cc", "10.0.0.2", ["-c", "-d", "cc"]),
        ("udp.rr.8000", "fd00::2", ["-r", "8000,8000"]),
        ("tcp.bidirectional", "10.0.0.2", ["-r", "16384,16384", "-b", "3"]),
    ],
)
def test_streams_payload_and_direction_are_reported(name: str, address: str, words: list[str]) -> None:
    assert f" {' '.join(words)} " in f" {' '.join(tools.command(BY_NAME[name], address, 1, ''))} "


def test_both_ways_are_reported_and_their_sum_is_compared() -> None:
    values = tools.parse(BY_NAME["iperf3.10.bidirectional"], recorded(BY_NAME["iperf3.10.bidirectional"]))
    (both, forward, reverse) = (value.value for value in values)
    assert [value.metric for value in values] == ["throughput", "throughput.forward", "throughput.reverse"]
    assert both == forward + reverse
    assert (round(forward / 1e6), round(reverse / 1e6)) == (4606, 595)


@pytest.mark.parametrize("name", ["udp.packets.64", "udp.packets.64.reverse"])
def test_received_datagrams_are_counted_by_their_bytes(name: str) -> None:
    text = recorded(BY_NAME[name])
    received = json.loads(text)["end"]["sum_received"]
    values = {value.metric: value for value in tools.parse(BY_NAME[name], text)}
    assert values["packets"].value == pytest.approx(received["bytes"] / 64 / received["seconds"])
    assert values["delivered"].value == pytest.approx(100 - received["lost_percent"], abs=0.1)
    assert values["jitter"].value == pytest.approx(1000 * received["jitter_ms"])
    assert {name: value.direction for name, value in values.items()} == {
        "throughput": "higher", "packets": "higher", "delivered": "higher", "jitter": "lower",
    }  # fmt: skip


def test_no_jitter_is_no_number_to_compare() -> None:
    values = tools.parse(BY_NAME["udp.packets.64"], datagrams(packets=9, lost_packets=0, jitter_ms=0))
    assert [(value.metric, value.value) for value in values[1:]] == [("packets", 9.0), ("delivered", 100.0)]


def test_tcpbench_is_what_all_connections_wrote_until_the_last_interval() -> None:
    text = (
        "  elapsed_ms          bytes         mbps   bwidth \n"
        "         100        1000000       80.000   50.00% \n"
        "         101        1000000       80.000   50.00% \n"
        "Conn:   2 Mbps:      160.000 Peak Mbps:      160.000 Avg Mbps:       80.000\n"
        "         200         500000       40.000  100.00% \n"
    )
    (value,) = tools.parse(BY_NAME["tcpbench.10"], text)
    assert (value.value, value.unit) == (8 * 2_500_000 / 0.2, "bits/s")


def test_an_interval_in_which_tcpbench_wrote_nothing_counts() -> None:
    """Its share is 0 of 0."""
    text = "  100  1000000  80.000  100.00% \nConn:   1\n  200  0  0.000  -nan% \n"
    assert tools.parse(BY_NAME["tcpbench.1"], text)[0].value == 8 * 1_000_000 / 0.2


def test_interim_results_add_up_to_the_final_result() -> None:
    text = (FIXTURES / "iperf3-three-seconds.txt").read_text(encoding="utf-8")
    both = BY_NAME["iperf3.1.bidirectional"]
    intervals = tools.interim(both, text)
    assert [round(end) for end, _ in intervals] == [1, 2, 3]
    assert sum(rate for _, rate in intervals) / 3 == pytest.approx(tools.parse(both, text)[0].value, rel=0.05)
    text = recorded(BY_NAME["tcpbench.10"])
    intervals = tools.interim(BY_NAME["tcpbench.10"], text)
    assert len(intervals) == text.count("elapsed_ms") + text.count("Conn:") - 1
    lengths = [end - start for start, (end, _) in zip([0.0, *(end for end, _ in intervals)], intervals, strict=False)]
    written = sum(length * rate for length, (_, rate) in zip(lengths, intervals, strict=True))
    assert written / intervals[-1][0] == pytest.approx(tools.parse(BY_NAME["tcpbench.10"], text)[0].value)


@pytest.mark.parametrize("name", ["tcp.stream", "tcp.maerts", "tcp.bidirectional"])
def test_interim_results_of_netperf_add_up_to_the_final_result(name: str) -> None:
    intervals = tools.interim(BY_NAME[name], recorded(BY_NAME[name]))
    assert [round(end, 1) for end, _ in intervals] == [0.2, 0.4, 0.6, 0.8, 1.0]
    starts = [0.0, *(end for end, _ in intervals)]
    carried = sum((end - start) * rate for start, (end, rate) in zip(starts, intervals, strict=False))
    assert carried == pytest.approx(tools.parse(BY_NAME[name], recorded(BY_NAME[name]))[0].value, rel=0.03)


def test_netperf_may_stall_for_an_interval_and_what_it_garbles_is_no_series() -> None:
    lines = "NETPERF_INTERIM_RESULT[{0}]={1}\nNETPERF_UNITS[{0}]=10^3bits/s\nNETPERF_INTERVAL[{0}]=0.200\n"
    stalled = lines.format(0, "8.00") + lines.format(1, "0.00")
    assert tools.interim(BY_NAME["tcp.stream"], stalled) == [(0.2, 8000), (0.4, 0)]
    for garbled in (stalled.replace("0.200", "-1"), stalled.replace("10^3bits", "10^3.bits"), lines.format(0, 8)):
        assert tools.interim(BY_NAME["tcp.stream"], garbled) == []


def test_one_interval_is_no_series_and_sent_datagrams_are_no_received_ones() -> None:
    assert tools.interim(BY_NAME["iperf3.1"], recorded(BY_NAME["iperf3.1"])) == []
    assert "-D" not in tools.command(BY_NAME["udp.stream"], "10.0.0.2", 1, "")
    way = {"packets": 5, "end": 1, "bits_per_second": 8}
    sent, came = ({"intervals": [{"sum": {**way, "sender": sender}}] * 2} for sender in (True, False))
    assert tools.interim(BY_NAME["udp.packets.64"], json.dumps(sent)) == []
    assert tools.interim(BY_NAME["udp.packets.64.reverse"], json.dumps(came)) == [(1, 8), (1, 8)]


def test_a_search_returns_two_rates() -> None:
    values = tools.parse(BY_NAME["udp.ndr"], SEARCH.replace(", too much is lost at 12866", ", all that is sent"))
    assert [(value.metric, value.value) for value in values] == [("pdr", 12697.0), ("ndr", 12053.0)]


def test_latencies_under_load_are_reported_with_their_load_and_the_rate_that_it_is_of() -> None:
    values = {value.metric: value for value in tools.parse(BY_NAME["udp.loaded"], LOADED)}
    shares = [f"latency.{share}.{load}" for load in LOADS for share in ("p50", "p90", "p99", "max")]
    assert list(values) == ["ndr", *shares]
    assert values["ndr"].value == 78004
    assert (values["latency.p99.90"].value, values["latency.p99.90"].unit) == (5947.1, "us")


def test_the_check_of_the_cpu_runs_on_the_host_it_checks() -> None:
    measure = BY_NAME["cpu.check"]
    assert (measure.host, measure.server) == ("dut", "none")
    argv = tools.command(measure, "", 1, "")
    done = subprocess.run([*argv[:-1], "0.01"], capture_output=True, text=True, check=True)
    assert tools.parse(measure, done.stdout)[0].unit == "rounds/s"


def test_what_a_blast_sent_and_what_came_are_two_numbers() -> None:
    values = tools.parse(BY_NAME["udp.blast"], NETBLAST)
    assert [(value.metric, value.value) for value in values] == [("packets", 500_000.0), ("sent", 800_000.0)]


def test_memory_is_measured_in_bits() -> None:
    (value,) = tools.parse(BY_NAME["mem.tcp.1"], TCPLOAD)
    assert (value.value, value.unit) == (1e10, "bits/s")


def test_misses_are_reported_where_the_cpu_counts_them() -> None:
    counted = tools.parse(BY_NAME["receive"], RECEIVED + "cache misses: 19.00 a packet\n")
    assert [(value.metric, value.value, value.direction) for value in counted] == [
        ("cpu", 2090.7, "lower"),
        ("idle", 17.0, "higher"),
        ("packets", 397_000.0, "higher"),
        ("misses", 19.0, "lower"),
    ]
    not_counted = RECEIVED + "cache misses: not available (No such device)\n"
    assert tools.parse(BY_NAME["receive"], not_counted) == counted[:3]


def only_values_or_tool_errors(measure: Measure, output: str) -> None:
    assert all(0 < end < math.inf and rate < math.inf for end, rate in tools.interim(measure, output))
    try:
        values = tools.parse(measure, output)
    except ToolError:
        return
    assert all(0 < value.value < math.inf for value in values)


def test_simstack_gets_the_tunables_and_prints_the_cost_of_each_unit() -> None:
    measure = BY_NAME["simulated.forward.4"]
    expected = ["/x/bin/simstack", "--json", "--workload", "forward", "--cpus", "4", "--ms", "20"]
    assert tools.command(measure, "", 2, "/x") == expected
    assert tools.command(BY_NAME["simulated.forward.1.blocks"], "", 2, "/x") == [*expected[:5], "1", *expected[6:]]
    assert simstack.booting({"a.b": "1"}, 7) == ["--seed", "7", "--set", "a.b=1"]
    server = {"a.b": "1", "sim.machine": "server-64"}
    assert simstack.booting(server, 7) == ["--seed", "7", "--machine", "server-64", "--set", "a.b=1"]
    assert [(value.metric, value.value, value.unit, value.direction) for value in tools.parse(measure, SIMSTACK)] == [
        ("packets", 3417484.163, "packets/s", "higher"),
        ("instructions", 1327.525, "instructions/packet", "lower"),
        ("blocks", 237.317, "blocks/packet", "lower"),
        ("atomics", 34.063, "atomics/packet", "lower"),
    ]
    (rate, *_) = tools.parse(BY_NAME["simulated.tcp.4"], SIMSTACK.replace("packets/s", "kilobytes/s"))
    assert (rate.value, rate.unit) == (8000 * 3417484.163, "bits/s")


@given(st.sampled_from(MEASURES), st.binary(max_size=300))
def test_any_bytes(measure: Measure, output: bytes) -> None:
    only_values_or_tool_errors(measure, output.decode("utf-8", "replace"))


@given(st.sampled_from(MEASURES), st.data())
def test_damaged_output(measure: Measure, data: st.DataObject) -> None:
    text = recorded(measure)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    only_values_or_tool_errors(measure, text[:start] + data.draw(st.text(max_size=20)) + text[end:])


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["end", "sum_received", "bits_per_second", "error"]), inner)
    ),
)
TOTALS = st.dictionaries(
    st.sampled_from(["bits_per_second", "packets", "lost_packets", "seconds", "jitter_ms", "end", "sender"]),
    st.floats() | st.integers(),
)
INTERVALS = st.dictionaries(st.sampled_from(["sum", "sum_bidir_reverse"]), TOTALS | JSON_VALUES)
REPORTS = st.fixed_dictionaries({"intervals": st.lists(INTERVALS, max_size=3), "end": st.dictionaries(
    st.sampled_from(["sum_received", "sum_received_bidir_reverse"]), TOTALS
)})  # fmt: skip


@given(JSON_VALUES | REPORTS)
def test_any_json(document: object) -> None:
    only_values_or_tool_errors(BY_NAME["iperf3.1"], json.dumps(document))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("[" * 200_000, "simstack printed no result, but a document that is nested more than 32 deep"),
        ("", "simstack printed no result, but a document that is not JSON"),
        ("{}", "simstack printed no result: it lacks 'runs'"),
        ('{"runs": 1}', "simstack printed no result: cannot unpack"),
        ('{"runs": [{}, {}]}', "simstack printed no result: too many values"),
        ("[]", "simstack printed no result: list indices must be"),
    ],
)
def test_simstack_without_a_result_is_described_in_words(output: str, message: str) -> None:
    with pytest.raises(ToolError, match=re.escape(message)) as raised:
        simstack.parse(output)
    assert "Error" not in str(raised.value)
