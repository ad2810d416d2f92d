# SPDX-License-Identifier: BSD-2-Clause
"""A number of netperf's is read only from a column whose heading names it; unknown output is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.imports.netperf_tables import HEADINGS
from tests.unit.imports.reading import DATA, file, problems, read
from tests.unit.imports.test_formats import anything

TCP_RR = (DATA / "netperf" / "TCP_RR.txt").read_text(encoding="utf-8")
TCP_CC = (DATA / "netperf" / "TCP_CC.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "test", "metric", "value"),
    [
        ("chosen-rr.txt", "tcp.rr", "transactions", 67638.88),  # -O: other columns in another order
        ("TCP_RR-v2.txt", "tcp.rr", "transactions", 41577.43),  # -v 2: a second table below
        ("TCP_STREAM-v2.txt", "tcp.stream", "throughput", 9091.89e6),
        ("UDP_STREAM-cpu.txt", "udp.stream", "throughput", 20915.7e6),  # -c -C: columns of CPU use
        ("TCP_STREAM-cpu.txt", "tcp.stream", "throughput", 10591.53e6),
        ("TCP_RR-cpu.txt", "tcp.rr", "transactions", 4359.22),
        ("TCP_RR-i.txt", "tcp.rr", "transactions", 44097.49),  # -i: a warning about confidence above
        ("TCP_STREAM-D.txt", "tcp.stream", "throughput", 9473.92e6),  # -D: interim results
        ("TCP_RR-f.txt", "tcp.rr", "throughput", 1.06e6),  # -f m
        ("TCP_CC.txt", "tcp.cc", "transactions", 18253.0),
    ],
)
def test_every_table_gives_the_number_below_its_heading(name: str, test: str, metric: str, value: float) -> None:
    (found,) = read("netperf", DATA / "netperf" / name)
    assert found.test == f"{test}/host-host/ipv4"
    assert found.values[0].metric == metric
    assert found.values[0].value == pytest.approx(value)


def test_chosen_columns_are_known_by_their_headings() -> None:
    (found,) = read("netperf", DATA / "netperf" / "chosen-rr.txt")
    assert {value.metric: value.value for value in found.values} == {
        "transactions": 67638.88, "latency.mean": 14.74, "latency.min": 7, "latency.p50": 8, "latency.p99": 28,
        "latency.max": 5292,
    }  # fmt: skip


def test_omni_needs_the_name_of_its_test_and_has_its_unit() -> None:
    assert "set --test, such as" in problems("netperf", DATA / "netperf" / "omni-rr.txt")[0]
    (found,) = read("netperf", DATA / "netperf" / "omni-rr.txt", test="tcp.rr/host-host/ipv4")
    assert [(value.metric, value.value) for value in found.values] == [("transactions", 36672.67)]


def test_an_unknown_test_is_reported_and_its_row_is_not_that_of_the_test_before(tmp_path: Path) -> None:
    text = TCP_RR + TCP_CC.replace("TCP Connect/Close", "SCTP REQUEST/RESPONSE")
    (problem,) = problems("netperf", file(tmp_path, text))
    assert problem.startswith("given.txt:9: 'SCTP REQUEST/RESPONSE' is not a known test")
    assert [found.test.partition("/")[0] for found in read("netperf", file(tmp_path, TCP_RR + TCP_CC))] == [
        "tcp.rr", "tcp.cc"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("Trans.", "Round."), "7: the columns below 'Local /Remote' are not aligned with their headings"),
        (("1        1       1.00     20140.57", "1        1       20140.57"), "7: 5 numbers below a heading of 6"),
        (("Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.\n", ""), "5: "),
        (
            ("16384  131072 1        1       1.00     20140.57   \n16384  131072", "recv_response: partial response"),
            "1: this TCP REQUEST",
        ),
        (("20140.57", "-1.00"), "7: THROUGHPUT is -1"),
    ],
)
def test_a_table_that_is_not_known_ends_its_test(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    found = problems("netperf", file(tmp_path, TCP_RR.replace(*change)))
    assert found[0].startswith(f"given.txt:{reason}")


def test_a_failed_call_is_named_by_its_line_and_the_next_one_is_read(tmp_path: Path) -> None:
    banner = TCP_RR.splitlines()[0]
    text = f"{banner}\nestablish control: are you sure there is a netserver listening?\n{TCP_RR}"
    assert problems("netperf", file(tmp_path, text)) == ["given.txt:1: this TCP REQUEST/RESPONSE test has no result"]


@pytest.mark.parametrize(("rate", "void"), [(124.18, True), (30_000.0, False)])
def test_a_client_that_waited_most_of_the_time_gives_void_samples(tmp_path: Path, rate: float, void: bool) -> None:
    """netperf 2.7 stops at the first lost datagram; its results before look like a good latency."""
    chosen = f"THROUGHPUT={rate}\nTHROUGHPUT_UNITS=Trans/s\nELAPSED_TIME=2.01\nMEAN_LATENCY=28.25\n"
    (found,) = read("netperf", file(tmp_path, chosen), test="udp.rr/host-host/ipv4")
    assert bool(found.void) is void
    if void:
        assert found.void.startswith("stall: 124.18 transactions/s of 28.25 us fill 0.4 % of the time")


CRR = """\
MIGRATED TCP Connect/Request/Response TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0 AF_INET : demo
Local /Remote
Socket Size   Request  Resp.   Elapsed  Trans.
Send   Recv   Size     Size    Time     Rate
bytes  Bytes  bytes    bytes   secs.    per sec

16384  131072 1        1       {seconds}        {rate}
16384  131072
"""
"""What netperf 2.7.0 prints; with -f m the rate is in 10^6bits/s, below the same heading."""


def test_bits_below_the_heading_of_transactions_are_refused(tmp_path: Path) -> None:
    given = file(tmp_path, CRR.format(seconds="0.04", rate="0.18"))
    (problem,) = problems("netperf", given)
    assert problem.startswith("given.txt:7: 0.18 transactions/s in 0.04 s are less than one")
    (record,) = read("netperf", file(tmp_path, CRR.format(seconds="10.00", rate="0.18")))
    assert [(value.metric, value.value) for value in record.values] == [("transactions", 0.18)]


@pytest.mark.parametrize(("repeated", "accepted"), [("Remote OS Security Type", True), ("Throughput", False)])
def test_only_columns_that_are_read_must_not_be_repeated(tmp_path: Path, repeated: str, accepted: bool) -> None:
    """netperf 2.7.0 prints two columns of `-o all` twice."""
    banner = CRR.splitlines()[0]
    given = file(tmp_path, f"{banner}\nThroughput,Throughput Units,{repeated},{repeated}\n12.5,Trans/s,1,2\n")
    if accepted:
        (record,) = read("netperf", given)
        assert record.values[0].value == 12.5
    else:
        assert "a heading occurs twice" in problems("netperf", given)[0]


COLUMNS = {
    "THROUGHPUT": ("Throughput", "67638.88"),
    "ELAPSED_TIME": ("Elapsed|Time|(sec)", "10.00"),
    "MEAN_LATENCY": ("Mean|Latency|Microseconds", "14.74"),
    "MIN_LATENCY": ("Minimum|Latency|Microseconds", "7"),
    "P50_LATENCY": ("50th|Percentile|Latency|Microseconds", "8"),
    "P90_LATENCY": ("90th|Percentile|Latency|Microseconds", "20"),
    "P99_LATENCY": ("99th|Percentile|Latency|Microseconds", "28"),
    "MAX_LATENCY": ("Maximum|Latency|Microseconds", "5292"),
    "STDDEV_LATENCY": ("Stddev|Latency|Microseconds", "77.53"),
    "REQUEST_SIZE": ("Request|Size|Bytes", "1"),
    "PROTOCOL": ("Protocol", "TCP"),
    "LOCAL_CPU_UTIL": ("Local|CPU|Util|%", "-1.00"),
    "TRANSACTION_RATE": ("Transaction|Rate|Tran/s", "12345.67"),
}
"""Selectors of -O with their headings, and a value of each; those that are no number cannot begin a row."""


def chosen_table(names: list[str]) -> str:
    """What netperf 2.7.0 prints for -O: columns as wide as their widest cell, flush left."""
    columns = [[*COLUMNS[name][0].split("|")] for name in names]
    height = max(map(len, columns))
    rows = [[column[place] if place < len(column) else "" for column in columns] for place in range(height)]
    rows.append([COLUMNS[name][1] for name in names])
    widths = [max(len(row[place]) for row in rows) for place in range(len(names))]
    lines = ["".join(f"{cell:<{width}} " for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([TCP_RR.splitlines()[0], *lines, ""])


@given(names=st.permutations(list(COLUMNS)).flatmap(lambda names: st.integers(1, 13).map(lambda most: names[:most])))
@anything
def test_any_choice_of_columns_in_any_order_is_known_by_its_headings(tmp_path: Path, names: list[str]) -> None:
    given = file(tmp_path, chosen_table(names))
    if names[0] == "PROTOCOL" or "THROUGHPUT" not in names:
        assert problems("netperf", given)
        return
    (found,) = read("netperf", given)
    assert (found.values[0].metric, found.values[0].value) == ("transactions", 67638.88)
    expected = {
        f"latency.{name.split('_')[0].lower()}": float(COLUMNS[name][1])
        for name in names
        if name in HEADINGS.values() and name.endswith("_LATENCY")
    }
    assert {value.metric: value.value for value in found.values[1:]} == expected
    assert found.seconds == (10.0 if "ELAPSED_TIME" in names else 0.0)


LIST = "THROUGHPUT=99\nTHROUGHPUT_UNITS=Trans/s\n"
TABLE = "Throughput,Throughput Units\n99,Trans/s\n"


@pytest.mark.parametrize(
    "banner",
    [
        "SCTP_STREAM (1 to many) TEST from 0.0.0.0 port 0 AF_INET to 127.0.0.1",
        "DLPI CO REQUEST/RESPONSE TEST to host : histogram",
        "XTI TCP RR TEST to 127.0.0.1",
        "sctp rr to host",
        "Some other tool 1.0",
    ],
)
@pytest.mark.parametrize("result", [LIST, TABLE, TCP_CC.partition("\n")[2]])
@pytest.mark.parametrize("before", [TCP_RR, f"{TCP_RR.splitlines()[0]}\n{LIST}"])
def test_a_result_below_an_unknown_banner_is_not_that_of_the_test_before(
    tmp_path: Path, banner: str, result: str, before: str
) -> None:
    found = problems("netperf", file(tmp_path, f"{before}{banner}\n{result}"))
    assert int(found[0].split(":")[1]) > before.count("\n")


def test_a_sendfile_test_behind_a_stream_has_its_own_name_and_number(tmp_path: Path) -> None:
    stream = netperf_output("TCP_STREAM")
    rate = stream.split()[-1]
    text = stream + stream.replace("MIGRATED TCP STREAM", "TCP SENDFILE").replace(rate, "1234.56")
    found = read("netperf", file(tmp_path, text))
    assert [record.test for record in found] == ["tcp.stream/host-host/ipv4", "tcp.sendfile/host-host/ipv4"]
    assert [record.values[0].value for record in found] == pytest.approx([float(rate) * 1e6, 1234.56e6])


def netperf_output(name: str) -> str:
    return (DATA / "netperf" / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("banner", "result"),
    [
        ("TCP_RR", netperf_output("TCP_STREAM").partition("\n")[2]),
        ("TCP_RR", netperf_output("UDP_STREAM").partition("\n")[2]),
        ("TCP_STREAM", TCP_CC.partition("\n")[2]),
        ("TCP_STREAM", LIST),
        ("TCP_STREAM", TABLE),
        ("UDP_STREAM", netperf_output("TCP_STREAM").partition("\n")[2]),
    ],
)
def test_a_result_of_another_kind_than_its_banner_is_refused(tmp_path: Path, banner: str, result: str) -> None:
    text = f"{netperf_output(banner).splitlines()[0]}\n{result}"
    assert "the result is not that of a " in problems("netperf", file(tmp_path, text))[0]


def test_more_datagrams_than_were_sent_are_refused(tmp_path: Path) -> None:
    text = netperf_output("UDP_STREAM").replace("173555", "200323")
    assert (
        "200323 datagrams were received, but 200322 were sent, which cannot be"
        in problems("netperf", file(tmp_path, text))[0]
    )


@pytest.mark.parametrize("name", ["UDP_STREAM", "UDP_STREAM-cpu"])
@pytest.mark.parametrize(
    ("row", "column", "factor"),
    [
        (0, -1, 10), (0, -1, 0.1), (0, 2, 10), (0, 2, 0.1), (0, 3, 10), (0, 1, 0.5), (0, 1, 2),
        (1, -1, 10), (1, -1, 0.1), (1, -1, 1.1), (1, 1, 10), (1, 1, 0.5), (1, 2, 0.5),
    ],
)  # fmt: skip
def test_rates_that_are_not_those_of_their_datagrams_are_refused(
    tmp_path: Path, name: str, row: int, column: int, factor: float
) -> None:
    """Each number of the two rows of a UDP stream: message size, time, datagrams and rate."""
    lines = netperf_output(name).splitlines()
    cells = lines[5 + row].split()
    place = column if column >= 0 else len(cells) - (3 if "cpu" in name else 1)
    cells[place] = f"{float(cells[place]) * factor:g}"
    lines[5 + row] = "  ".join(cells)
    assert "which cannot be" in problems("netperf", file(tmp_path, "\n".join([*lines, ""])))[0]


def test_a_received_rate_above_the_sent_one_is_refused(tmp_path: Path) -> None:
    banner, *heading = netperf_output("UDP_STREAM").splitlines()[:4]
    rows = ["212992 1000 1.00 100000 0 800.00", "212992 1.00 100000 815.00"]
    assert "above the sent one" in problems("netperf", file(tmp_path, "\n".join([banner, *heading, "", *rows, ""])))[0]


@pytest.mark.parametrize(("sender", "receiver"), [("LOCAL", "REMOTE"), ("REMOTE", "LOCAL")])
@pytest.mark.parametrize(("received", "accepted"), [("900.00", True), ("905.00", True), ("1000.00", False)])
def test_the_ends_of_chosen_output_agree(
    tmp_path: Path, sender: str, receiver: str, received: str, accepted: bool
) -> None:
    chosen = f"{sender}_SEND_THROUGHPUT=900.00\n{receiver}_RECV_THROUGHPUT={received}\n"
    path = file(tmp_path, f"THROUGHPUT=900.00\nTHROUGHPUT_UNITS=10^6bits/s\n{chosen}")
    test = "udp.stream/host-host/ipv4"
    if accepted:
        assert len(read("netperf", path, test=test)) == 1
    else:
        assert "RECV_THROUGHPUT is 1000, but" in problems("netperf", path, test=test)[0]


def test_banners_before_netperf_2_4_name_a_known_test(tmp_path: Path) -> None:
    table = TCP_RR.partition("\n")[2]
    (found,) = read("netperf", file(tmp_path, f"TCP REQUEST/RESPONSE TEST to localhost : histogram\n{table}"))
    assert (found.test, found.values[0].value) == ("tcp.rr/host-host/ipv4", 20140.57)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"MEAN_LATENCY": "nan"}, "MEAN_LATENCY is nan"),
        ({"MEAN_LATENCY": "-5"}, "MEAN_LATENCY is -5 us"),
        ({"P99_LATENCY": "fast"}, "P99_LATENCY is not a number"),
        ({"P99_LATENCY": "12,5"}, "P99_LATENCY is not a number: '12,5' (write a decimal point)"),
        ({"MAX_LATENCY": "3e6"}, "MAX_LATENCY is 3e+06 us in a test of 2 s, which cannot be"),
        ({"MIN_LATENCY": "40"}, "MEAN_LATENCY is 28.25 us, not between min, 40 us"),
        ({"MAX_LATENCY": "20"}, "and max, 20 us"),
        ({"THROUGHPUT": "30000,5"}, "THROUGHPUT is not a number: '30000,5' (write a decimal point)"),
        ({"THROUGHPUT": "1e400"}, "THROUGHPUT is inf"),
        ({"THROUGHPUT": "-0.0"}, "THROUGHPUT is -0"),
        ({"ELAPSED_TIME": "0"}, "ELAPSED_TIME is 0"),
    ],
)
def test_numbers_that_cannot_be_are_refused(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    usual = {
        "THROUGHPUT": "30000", "THROUGHPUT_UNITS": "Trans/s", "ELAPSED_TIME": "2.00", "MEAN_LATENCY": "28.25",
        "MIN_LATENCY": "12", "P50_LATENCY": "0", "P90_LATENCY": "-1", "MAX_LATENCY": "2297",
    }  # fmt: skip
    text = "".join(f"{name}={value}\n" for name, value in {**usual, **change}.items())
    assert reason in problems("netperf", file(tmp_path, text), test="tcp.rr/host-host/ipv4")[0]
    text = "".join(f"{name}={value}\n" for name, value in usual.items())
    (found,) = read("netperf", file(tmp_path, text), test="tcp.rr/host-host/ipv4")
    assert [value.metric for value in found.values] == ["transactions", "latency.mean", "latency.min", "latency.max"]


def test_the_decimal_comma_of_a_table_is_reported(tmp_path: Path) -> None:
    found = problems("netperf", file(tmp_path, TCP_RR.replace("20140.57", "20140,57")))
    assert found[0].startswith("given.txt:7: a comma in a row of numbers: write decimal points")


def test_no_value_goes_to_the_call_before_it(tmp_path: Path) -> None:
    """With -P 0 nothing separates the calls: the latency may be of either."""
    first, second = LIST, f"MEAN_LATENCY=5\n{LIST}"
    assert (
        "has other names than the result before it"
        in problems("netperf", file(tmp_path, first + second), test="tcp.rr/host-host/ipv4")[0]
    )
    found = read("netperf", file(tmp_path, f"{first}rc=0\n{second}rc=0\n"), test="tcp.rr/host-host/ipv4")
    assert [len(one.values) for one in found] == [1, 2]


def test_a_script_may_print_the_status_of_its_calls(tmp_path: Path) -> None:
    """A client that lost a datagram, with the status of netperf behind each call."""
    call = "THROUGHPUT={}\nTHROUGHPUT_UNITS=Trans/s\nELAPSED_TIME=2.02\nMEAN_LATENCY={}\nMAX_LATENCY=5607\nrc={}\n"
    given = file(tmp_path, call.format(2.47, 1325, 0) + call.format(124.18, 28.25, 0))
    found = read("netperf", given, test="udp.rr/host-host/ipv4")
    assert [record.void.partition(":")[0] for record in found] == ["stall", "stall"]
    failed = file(tmp_path, call.format(2.47, 1325, 1), "failed.txt")
    assert "netperf prints no such line: 'rc=1'" in problems("netperf", failed, test="udp.rr/host-host/ipv4")[0]
