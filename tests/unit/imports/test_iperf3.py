# SPDX-License-Identifier: BSD-2-Clause
"""Reports of iperf3: copies, streams of events, protocols, and impossible numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.imports.reading import TOOLS, file, problems, read


def report(rate: float = 9e8, protocol: str = "TCP", start: dict[str, Any] | None = None, **received: object) -> str:
    total = {"seconds": 10.0, "bits_per_second": rate, **received}
    begun = {
        "cookie": "c0ffee", "connected": [{"remote_host": "192.0.2.2"}],
        "test_start": {"protocol": protocol, "num_streams": 1, **(start or {})},
    }  # fmt: skip
    return json.dumps({"start": begun, "end": {"sum_received": total}}, indent=1)


def udp(start: dict[str, Any] | None = None, **changes: Any) -> str:
    received: dict[str, Any] = {"packets": 1000, "lost_packets": 10, "jitter_ms": 0.02, **changes}
    return report(protocol="UDP", start=start, **received)


def test_a_report_that_was_printed_twice_counts_once(tmp_path: Path) -> None:
    one, other = report(9e8), report(9.1e8)
    found = read("iperf3", file(tmp_path, f"{one}\n{one}\n{other}\n{json.dumps(json.loads(other), indent=1)}"))
    assert [record.values[0].value for record in found] == [9e8, 9.1e8]
    assert [record.boot for record in read("iperf3", file(tmp_path, f"{one} {one} {other}"), boot_per_sample=True)] == [
        "1.1", "1.2"
    ]  # fmt: skip


def test_a_copy_in_another_file_is_no_other_boot(tmp_path: Path) -> None:
    first, second = (file(tmp_path, report(), f"{name}.json") for name in ("a", "b"))
    (problem,) = problems("iperf3", first, second)
    assert problem == f"b.json:1: is the same measurement as {first}, line 1: remove one of them"


@pytest.mark.parametrize("name", ["sum_received", "sum"])
def test_a_sum_that_is_there_twice_is_refused(tmp_path: Path, name: str) -> None:
    """iperf3 3.7 gives the sums of both directions the same name; 3.12 repeats other parts with equal values."""
    text = udp().replace('"sum_received"', '"sum_received": {"bits_per_second": 1}, "sum_received"')
    text = text.replace("sum_received", name)
    assert f"end.{name} is there several times" in problems("iperf3", file(tmp_path, text))[0]
    assert read("iperf3", file(tmp_path, udp().replace('"seconds": 10.0', '"seconds": 10.0, "seconds": 10.0')))


def test_both_directions_with_one_sum_are_refused(tmp_path: Path) -> None:
    assert "has the sum of one" in problems("iperf3", file(tmp_path, report(start={"bidir": 1})))[0]


def test_a_report_of_other_order_and_intervals_is_the_same_measurement(tmp_path: Path) -> None:
    """jq sorts names and rewrites numbers; --json-stream-full-output repeats its events as a report."""
    whole = json.loads((TOOLS / "iperf3.10.txt").read_text(encoding="utf-8"))
    events = [{"event": name, "data": whole[name]} for name in ("start", "end")]
    stream = "".join(f"{json.dumps(event)}\n" for event in events)
    text = f"{stream}{json.dumps(whole)}\n{json.dumps(whole, sort_keys=True).replace('.0,', ',')}"
    assert len(read("iperf3", file(tmp_path, text))) == 1


@pytest.mark.parametrize(
    ("name", "first", "message"),
    [
        ("start", {"test_start": {"protocol": "TCP"}}, "start"),
        ("end", {"sum_received": {"bits_per_second": 1}}, "end"),
        ("test_start", {"protocol": "TCP", "num_streams": 1}, "start.test_start"),
        ("protocol", "TCP", "start.test_start.protocol"),
        ("reverse", 0, "start.test_start.reverse"),
        ("connected", [], "start.connected"),
        ("remote_host", "192.0.2.1", "start.connected[0].remote_host"),
        ("bits_per_second", 1e9, "end.sum_received.bits_per_second"),
        ("lost_percent", 5, "end.sum_received.lost_percent"),
    ],
)
def test_no_value_of_a_repeated_name_counts(tmp_path: Path, name: str, first: object, message: str) -> None:
    start = {"reverse": 1}
    text = udp(lost_percent=1.0, start=start).replace(f'"{name}": ', f'"{name}": {json.dumps(first)}, "{name}": ', 1)
    assert f"1: {message} is there several times" in problems("iperf3", file(tmp_path, text))[0]


@pytest.mark.parametrize("headless", [False, True])
def test_a_report_without_its_beginning_needs_the_name_of_its_test(tmp_path: Path, headless: bool) -> None:
    """As the last lines of a stream of events: it may be UDP."""
    whole = json.loads(udp())
    text = json.dumps({"event": "end", "data": whole["end"]} if headless else {"end": whole["end"]})
    assert "has no start.test_start" in problems("iperf3", file(tmp_path, text))[0]
    assert len(read("iperf3", file(tmp_path, text), test="udp.mine/host-host/ipv4")) == 1


@pytest.mark.parametrize("protocol", [None, 5, ["UDP"], "", "TCP/IP"])
def test_what_is_no_name_of_a_protocol_is_refused(tmp_path: Path, protocol: object) -> None:
    text = report().replace('"TCP"', json.dumps(protocol))
    assert "is no name of a protocol" in problems("iperf3", file(tmp_path, text))[0]


def test_a_stream_of_events_is_one_report(tmp_path: Path) -> None:
    whole = json.loads((TOOLS / "iperf3.10.txt").read_text(encoding="utf-8"))
    events = [
        {"event": "start", "data": whole["start"]},
        *({"event": "interval", "data": interval} for interval in whole["intervals"]),
        {"event": "end", "data": whole["end"]},
    ]
    text = "".join(f"{json.dumps(event)}\n" for event in events)
    (usual,) = read("iperf3", TOOLS / "iperf3.10.txt")
    found = read("iperf3", file(tmp_path, text + text.replace('"timesecs": 1', '"timesecs": 2')))
    assert [(record.test, record.values, record.seconds) for record in found] == [
        (usual.test, usual.values, usual.seconds)
    ] * 2
    assert [record.line for record in found] == [1, 1 + len(events)]


def test_a_stream_without_its_end_is_reported_where_it_began(tmp_path: Path) -> None:
    begun = json.dumps({"event": "start", "data": {}})
    failed = json.dumps({"event": "error", "data": "unable to connect"})
    assert problems("iperf3", file(tmp_path, f"{report()}\n{begun}\n")) == [
        f"given.txt:{len(report().splitlines()) + 1}: this stream of iperf3 has no end event: the test did not finish"
    ]
    ended = json.dumps({"event": "end", "data": {}})
    assert "iperf3 says: unable to connect" in problems("iperf3", file(tmp_path, f"{begun}\n{failed}\n{ended}\n"))[0]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (report(), "iperf3.1"),
        (report(protocol="SCTP"), "iperf3.sctp.1"),
        (report(start={"mptcp": 1}), "iperf3.mptcp.1"),
        (udp(), "iperf3.udp.1"),
        (report(start={"reverse": 1}), "iperf3.1.reverse"),
    ],
)
def test_the_protocol_is_part_of_the_name(tmp_path: Path, text: str, name: str) -> None:
    (found,) = read("iperf3", file(tmp_path, text))
    assert found.test == f"{name}/host-host/ipv4"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"lost_packets": -3}, "lost_packets is -3 of 1000 packets"),
        ({"lost_packets": 1001}, "lost_packets is 1001 of 1000 packets"),
        ({"lost_percent": 250}, "lost_percent is 250, which cannot be"),
        ({"lost_percent": -1}, "lost_percent is -1"),
        ({"jitter_ms": 10_001}, "jitter_ms is 10001 in a test of 10 s"),
        ({"jitter_ms": -0.5}, "jitter_ms is -0.5"),
    ],
)
@pytest.mark.parametrize("place", ["sum_received", "sum", "sum_sent", "sum_received_bidir_reverse", "streams"])
def test_numbers_that_cannot_be_are_refused(tmp_path: Path, change: dict[str, Any], reason: str, place: str) -> None:
    """In the report of any version: an older iperf3 has `sum` instead of `sum_received`."""
    document = json.loads(udp())
    wrong = json.loads(udp(**change))["end"]["sum_received"]
    if place == "sum":
        document["end"] = {"sum": wrong}
    else:
        document["end"][place] = [{"udp": {}}, {"udp": wrong}] if place == "streams" else wrong
    assert reason in problems("iperf3", file(tmp_path, json.dumps(document)))[0]


def both_ends(**changes: object) -> str:
    """A report of TCP with what was sent and received; a name of `changes` is one of both sums with its place."""
    document = json.loads(report())
    total = {"bytes": 1.125e9, "seconds": 10.0, "bits_per_second": 9e8}
    document["end"] = {"sum_sent": dict(total), "sum_received": dict(total)}
    for name, value in changes.items():
        end, _, field = name.partition("__")
        document["end" if end.startswith("sum") else "start"][end][field] = value
        if value is None:
            del document["end"][end][field]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sum_received__bits_per_second": "9e8"}, "is not a number, but the text '9e8'"),
        ({"sum_received__bits_per_second": "900000000"}, "is not a number, but the text"),
        ({"sum_received__seconds": "10"}, "is not a number, but the text"),
        ({"sum_received__bytes": "1125000000"}, "is not a number, but the text"),
        ({"sum_received__bits_per_second": 9e5}, "bytes in 10 s are others"),  # kbit/s
        ({"sum_received__bits_per_second": 1.125e8}, "bytes in 10 s are others"),  # bytes/s
        ({"sum_received__seconds": 1.0}, "bytes in 1 s are others"),
        ({"sum_received__seconds": -10.0}, "bytes in -10 s are others"),
        ({"sum_received__bytes": 0}, "but 0 bytes in 10 s are others"),
        ({"sum_received__bytes": 1.125e6}, "bytes in 10 s are others"),
        ({"sum_sent__bits_per_second": 1e12}, "sum_sent.bits_per_second is 1e+12, but"),
        ({"sum_received__bytes": 1.125e9 + 1}, "sum_received has 1.125e+09 bytes, but 1.125e+09 were sent"),
        ({"sum_sent__bytes": 1e9, "sum_sent__bits_per_second": 8e8}, "bytes, but 1e+09 were sent"),
        ({"sum_sent__bytes": None, "sum_sent__bits_per_second": 8e8}, "bytes, but 1e+09 were sent"),
        ({"sum_received__bytes": None, "sum_received__bits_per_second": 1e9}, "has 1.25e+09 bytes, but 1.125e+09"),
    ],
)
def test_rates_bytes_and_seconds_that_contradict_each_other_are_refused(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    assert reason in problems("iperf3", file(tmp_path, both_ends(**change)))[0]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"sum_received__bytes": 1.124e9},  # the rest was under way at the end
        {"sum_received__bytes": None},
        {"sum_sent__bytes": 1.12e9, "sum_sent__bits_per_second": 8.96e8, "test_start__omit": 2},
        {"sum_sent__bytes": 2.25e9, "sum_sent__seconds": 20.0},
        {"sum_received__bytes": 1.06e9},  # of another interval than the rate
        {"sum_sent__bits_per_second": 9.7e8},
        {"sum_received__seconds": 9.0},
    ],
)
def test_rates_that_can_be_are_read(tmp_path: Path, change: dict[str, Any]) -> None:
    (found,) = read("iperf3", file(tmp_path, both_ends(**change)))
    assert found.values[0].value == 9e8


def test_more_datagrams_may_come_than_were_sent_because_a_network_can_duplicate_them(tmp_path: Path) -> None:
    document = json.loads(udp(bytes=1.125e9))
    document["end"]["sum_sent"] = {"bytes": 1.1e9, "seconds": 10.0, "bits_per_second": 8.8e8}
    assert len(read("iperf3", file(tmp_path, json.dumps(document)))) == 1


def ends(name: str) -> str:
    """A report of the client, which has "connecting_to", or of the server, which has "accepted_connection"."""
    document = json.loads(report())
    document["start"][name] = {"host": "192.0.2.2", "port": 5201}
    document["end"]["sum_received"]["bits_per_second"] += name == "accepted_connection"
    return json.dumps(document)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("together", [False, True])
def test_the_reports_of_client_and_server_are_one_measurement(tmp_path: Path, order: int, together: bool) -> None:
    one, other = (ends(end) for end in ("connecting_to", "accepted_connection")[::order])
    first = file(tmp_path, f"{one}\n{other}\n" if together else one, "1.json")
    files = [first] if together else [first, file(tmp_path, other, "2.json")]
    assert f"is the same measurement as {first}, line 1: remove one of them" in problems("iperf3", *files)[0]


def test_an_end_that_was_printed_twice_counts_once(tmp_path: Path) -> None:
    assert len(read("iperf3", file(tmp_path, ends("connecting_to") * 2))) == 1


@pytest.mark.parametrize(
    ("name", "missing"), [("num_streams", "number of streams"), ("protocol", "name of a protocol")]
)
def test_a_part_of_the_name_is_not_guessed(tmp_path: Path, name: str, missing: str) -> None:
    document = json.loads(report())
    del document["start"]["test_start"][name]
    assert f"start.test_start.{name} is no {missing}" in problems("iperf3", file(tmp_path, json.dumps(document)))[0]


def test_an_ipv4_peer_of_a_socket_for_both_versions_is_ipv4(tmp_path: Path) -> None:
    (found,) = read("iperf3", file(tmp_path, report().replace("192.0.2.2", "::ffff:192.0.2.2")))
    assert found.test == "iperf3.1/host-host/ipv4"


def test_one_sum_of_a_measurement_both_ways_is_refused_if_the_request_is_not_reported(tmp_path: Path) -> None:
    document = json.loads(report())
    document["end"]["sum_sent_bidir_reverse"] = {"bits_per_second": 9e8}
    assert "both directions were measured" in problems("iperf3", file(tmp_path, json.dumps(document)))[0]


def test_an_impossible_jitter_is_refused_where_no_losses_are_reported(tmp_path: Path) -> None:
    document = json.loads(udp(jitter_ms=20_000))
    del document["end"]["sum_received"]["lost_packets"]
    assert "jitter_ms is 20000 in a test of 10 s" in problems("iperf3", file(tmp_path, json.dumps(document)))[0]


def test_the_error_of_a_stream_without_its_end_is_repeated(tmp_path: Path) -> None:
    found = problems("iperf3", file(tmp_path, '{"event": "error", "data": "unable to connect to server"}\n'))
    assert found[0].endswith("did not finish (iperf3 says: unable to connect to server)")


def test_what_follows_a_report_is_named_with_its_line(tmp_path: Path) -> None:
    text = f"{report()}\niperf3: error - unable to send control message: Bad file descriptor\n"
    assert problems("iperf3", file(tmp_path, text)) == [
        f"given.txt:{report().count(chr(10)) + 2}: is not JSON, which iperf3 prints with --json: Expecting value"
    ]
    assert "is not JSON" in problems("iperf3", file(tmp_path, udp(lost_percent=7).replace(": 7", ": -nan")))[0]
