# SPDX-License-Identifier: BSD-2-Clause
"""The results of each format; any file gives records or problems with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfweb.imports import records
from perfweb.imports.records import ImportProblemsError, Problem, Record, slug
from perfweb.imports.write import FORMATS
from tests.unit.imports.reading import DATA, TOOLS, file, problems, read

TEST = "tcp.rr/host-host/ipv4"
anything = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.mark.parametrize(
    ("name", "test", "value"),
    [
        ("TCP_STREAM.txt", "tcp.stream/host-host/ipv4", 41870.02e6),
        ("UDP_STREAM.txt", "udp.stream/host-host/ipv4", 90945.45e6),
        ("TCP_RR.txt", "tcp.rr/host-host/ipv4", 20140.57),
        ("TCP_CRR.txt", "tcp.crr/host-host/ipv4", 14225.09),
        ("TCP_MAERTS.txt", "tcp.maerts/host-host/ipv4", 41788.92e6),
        ("omni-k.txt", "tcp.rr/host-host/ipv4", 20227.04),
    ],
)
def test_the_test_is_in_the_output_of_netperf(name: str, test: str, value: float) -> None:
    (found,) = read("netperf", DATA / "netperf" / name)
    assert (found.test, found.seconds) == (test, 1.0)
    assert found.values[0].value == pytest.approx(value)
    assert found.output.strip() == (DATA / "netperf" / name).read_text().strip()


def test_netperf_of_two_udp_values_counts_what_was_received() -> None:
    (found,) = read("netperf", DATA / "netperf" / "UDP_STREAM.txt")
    assert [value.metric for value in found.values] == ["throughput", "throughput.sender"]


def test_netperf_csv_and_chosen_output_have_latencies(tmp_path: Path) -> None:
    (found,) = read("netperf", DATA / "netperf" / "omni.csv", test="tcp.stream/host-host/ipv4")
    assert found.values[0].value == pytest.approx(41326.97e6)
    (lab,) = read("netperf", TOOLS / "tcp.rr.txt", test=TEST)
    assert {value.metric for value in lab.values} > {"transactions", "latency.p99"}


def test_netperf_output_of_many_calls_in_one_file(tmp_path: Path) -> None:
    many = "".join(path.read_text() for path in [DATA / "netperf" / "TCP_RR.txt", DATA / "netperf" / "TCP_STREAM.txt"])
    chosen = (TOOLS / "tcp.rr.txt").read_text()
    assert [found.test.partition("/")[0] for found in read("netperf", file(tmp_path, many))] == ["tcp.rr", "tcp.stream"]
    assert len(read("netperf", file(tmp_path, chosen * 3), test=TEST)) == 3
    boots = {found.boot for found in read("netperf", file(tmp_path, chosen * 3), test=TEST, boot_per_sample=True)}
    assert len(boots) == 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("hello\n", "1: netperf prints no such line: 'hello'"),
        ("", "0: has no result of netperf"),
        ("THROUGHPUT=-5\nTHROUGHPUT_UNITS=Trans/s\n", "3: THROUGHPUT is -5, which cannot be measured"),
        ("THROUGHPUT=nan\nTHROUGHPUT_UNITS=Trans/s\n", "3: THROUGHPUT is nan, which cannot be measured"),
        ("THROUGHPUT=1_000\nTHROUGHPUT_UNITS=Trans/s\n", "3: THROUGHPUT is not a number: '1_000'"),
        ("THROUGHPUT=1e30\nTHROUGHPUT_UNITS=Trans/s\n", "3: transactions is 1e+30"),
        ("THROUGHPUT=5\nTHROUGHPUT_UNITS=10^0bits/s\n", "3: netperf printed THROUGHPUT in an unknown unit"),
        ("Throughput,Throughput\n1,2\n", "1: a heading occurs twice"),
        ("1.0,2.0\n", "1: values without headings"),
        ("Throughput,Throughput Units\n1\n1,2,3\n", "3: 3 values below 2 headings"),
    ],
)
def test_what_netperf_does_not_print_is_reported_with_its_line(tmp_path: Path, content: str, reason: str) -> None:
    assert any(f"given.txt:{reason}" in problem for problem in problems("netperf", file(tmp_path, content), test=TEST))


def test_output_of_netperf_without_a_test_requires_one() -> None:
    assert "set --test" in problems("netperf", TOOLS / "tcp.rr.txt")[0]


@pytest.mark.parametrize(("name", "streams"), [("iperf3.1.txt", 1), ("iperf3.10.txt", 10)])
def test_iperf3_names_the_test_by_its_streams(name: str, streams: int) -> None:
    (found,) = read("iperf3", TOOLS / name)
    assert found.test == f"iperf3.{streams}/host-host/ipv4"
    assert (found.values[0].metric, found.values[0].unit) == ("throughput", "bits/s")
    assert found.seconds > 0


def iperf3_udp(**changes: object) -> str:
    total = {"bits_per_second": 1e9, "packets": 1000, "lost_packets": 100, "seconds": 10.0, **changes}
    start = {
        "test_start": {"protocol": "UDP", "num_streams": 2, "reverse": 1},
        "connected": [{"remote_host": "fd00::1"}],
    }
    return json.dumps({"start": start, "end": {"sum": total}})


def test_iperf3_udp_counts_what_arrived(tmp_path: Path) -> None:
    first, second = read("iperf3", file(tmp_path, iperf3_udp() + "\n" + iperf3_udp(lost_packets=0)))
    assert first.test == "iperf3.udp.2.reverse/host-host/ipv6"
    assert [found.values[0].value for found in (first, second)] == [pytest.approx(0.9e9), 1e9]
    assert (first.line, second.line) == (1, 2)


def test_iperf3_both_ways_is_named_as_the_catalogue_does() -> None:
    name = "iperf3.10.bidirectional"
    (found,) = read("iperf3", TOOLS / f"{name}.txt")
    assert found.test == f"{name}/host-host/ipv4"
    assert [value.metric for value in found.values] == ["throughput", "throughput.forward", "throughput.reverse"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "0: is empty"),
        ("[1]", "1: is JSON, but no report of iperf3"),
        ('{"end": \n', "2: is not JSON"),
        ('{"error": "unable to connect"}', "1: iperf3 says: unable to connect"),
        (iperf3_udp(lost_packets=2000), "1: sum.lost_packets is 2000 of 1000 packets, which cannot be"),
        (iperf3_udp(bits_per_second=float("nan")), "1: is not JSON that can be read: ValueError: NaN"),
        (iperf3_udp(bits_per_second=-1), "1: sum.bits_per_second is -1"),
        ("[" * 100_000, "1: is not JSON that can be read: RecursionError"),
    ],
)
def test_what_is_no_report_of_iperf3_is_reported(tmp_path: Path, content: str, reason: str) -> None:
    assert any(f"given.txt:{reason}" in problem for problem in problems("iperf3", file(tmp_path, content)))


def test_ministat_files_are_variants_and_folders_have_a_file_for_each_boot(tmp_path: Path) -> None:
    file(tmp_path, "1\n2 # two\n\n# three\n3\n", "new/boot1.txt")
    file(tmp_path, "4\n5\n", "new/boot2.txt")
    old = file(tmp_path, "7 10\n8 20\n", "old.txt")
    found = read("ministat", f"base={old}", tmp_path / "new", test=TEST, unit="ms")
    assert [(one.variant, one.boot, one.values[0].value) for one in found] == [
        ("base", "1", 7), ("base", "1", 8), ("new", "1", 1), ("new", "1", 2), ("new", "1", 3), ("new", "2", 4),
        ("new", "2", 5),
    ]  # fmt: skip
    assert {(one.values[0].unit, one.values[0].direction) for one in found} == {("ms", "lower")}
    assert [one.values[0].value for one in read("ministat", old, test=TEST, columns={"value": "2"})] == [10, 20]


@given(st.lists(st.floats(min_value=1e-9, max_value=1e15), min_size=1, max_size=20))
@anything
def test_every_number_of_a_ministat_file_arrives(tmp_path: Path, numbers: list[float]) -> None:
    found = read("ministat", file(tmp_path, "".join(f"{value!r}\n" for value in numbers)), test=TEST)
    assert [one.values[0].value for one in found] == numbers


def test_everything_wrong_is_reported_at_once(tmp_path: Path) -> None:
    bad = file(tmp_path, "1\nx\n-2\ninf\n0\n1 2\n5e-324\n")
    worse = file(tmp_path, b"1\n\xff\n", "latin1.txt")
    assert problems("ministat", bad, worse, tmp_path / "none", test=TEST) == [
        "given.txt:2: column 1 is not a number: 'x'",
        "given.txt:3: column 1 is -2, which cannot be measured",
        "given.txt:4: column 1 is inf, which cannot be measured",
        "given.txt:5: column 1 is 0, which cannot be measured",
        "latin1.txt:2: is not UTF-8: it has the byte 0xff",
        "none:0: does not exist",
        "given.txt:7: value is 4.94066e-324; numbers from 1e-12 to 1e+18 can be imported",
    ]


def test_two_paths_with_one_name_are_not_mixed(tmp_path: Path) -> None:
    paths = [file(tmp_path, "1\n", f"{folder}/out.txt") for folder in ("a", "b")]
    assert "write NAME=" in problems("ministat", *paths, test=TEST)[0]
    found = read("ministat", *(f"x={path}" for path in paths), test=TEST)
    assert [(one.variant, one.boot) for one in found] == [("x", "1"), ("x", "2")]


CSV = "kernel,run,pps\nold,1,10\nold,2,11\nnew,1,12\n"
COLUMNS = {"value": "pps", "variant": "kernel", "boot": "run"}


def test_csv_columns_are_mapped(tmp_path: Path) -> None:
    found = read("csv", file(tmp_path, CSV), columns=COLUMNS, test=TEST, unit="packets/s")
    assert [(one.variant, one.boot, one.values[0].metric, one.values[0].value) for one in found] == [
        ("old", "1", "pps", 10), ("old", "2", "pps", 11), ("new", "1", "pps", 12),
    ]  # fmt: skip
    assert found[0].output == "kernel,run,pps\nold,1,10\n"


@pytest.mark.parametrize(
    ("content", "columns", "reason"),
    [
        (CSV, {"value": "bps"}, "1: has no column 'bps'; its columns are: kernel, run, pps"),
        (CSV, {}, "1: has no column value: map one with --column value=NAME"),
        (CSV, {"worth": "pps", "value": "pps"}, "1: 'worth' is no field of a sample"),
        ("a,a,value\n1,2,3\n", {}, "1: has the column 'a' twice"),
        ("", {}, "1: has no column value"),
        ("value\n", {}, "0: has no line below the heading"),
        ("value,x\n1\n", {}, "2: has 1 cells; the heading has 2"),
        ('value\n"1\n', {}, "2: is not CSV: unexpected end of data"),
        ("value,date\n1,yesterday\n", {}, "2: 'yesterday' is no time"),
        ("value,date\n1,0001-01-01T00:00:00+14:00\n", {}, "2: '0001-01-01T00:00:00+14:00' is no time"),
        ("value,what\n1,../../etc\n", {"test": "what"}, "2: '../../etc' cannot name a test"),
        ("value,variant\n1,***\n", {}, "2: '***' cannot name a variant"),
        ("value,revision\n1,r1\x1f2\n", {}, "2: the revision 'r1\\x1f2' has a character that cannot be printed"),
        ("value\n1e999\n", {}, "2: it is inf, which cannot be measured"),
        ("value\n1\x002\n", {}, "2: has a NUL character"),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path: Path, content: str, columns: dict[str, str], reason: str) -> None:
    found = problems("csv", file(tmp_path, content), columns=columns, test=TEST)
    assert any(f"given.txt:{reason}" in problem for problem in found), found


RESULT = """\
SUBVALUE 1000 bits/sec
VALUE 3000000 bits/sec sender
VALUE 2000000 bits/sec receiver
PASS\tiperf3_-c10.3.45.35_-w1m_-t10\tDuration 0m10.31s
VALUE 1.25 sec real
VALUE 2.5 sec wall
PASS\ttime_-lp_make_-j4\tDuration 1m
FAIL\ttcpbench_-S1000000_-t10_10.3.45.35\tCould not parse value
"""


def test_names_of_result_folders_have_run_checkout_variant_and_boot(tmp_path: Path) -> None:
    file(tmp_path, RESULT, "2026-11-02T10:00:00Z/2026-11-01T00:00:00Z/000/test.result")
    file(tmp_path, RESULT, "2026-11-02T10:00:00Z/2026-11-01T00:00:00Z/001/test.result")
    file(tmp_path, "tcp\n", "2026-11-02T10:00:00Z/2026-11-01T00:00:00Z/001/logs/time_-lp_make_-j4.log")
    file(tmp_path, RESULT, "2026-11-02T10:00:00Z/2026-11-01T00:00:00Z/patch-tso.0/000/test.result")
    (tmp_path / "latest").symlink_to(tmp_path / "2026-11-02T10:00:00Z")
    found = read("test-result", tmp_path)
    assert {(one.variant, one.boot[-1], one.revision) for one in found} == {
        ("base", "0", "2026-11-01T00:00:00Z"), ("base", "1", "2026-11-01T00:00:00Z"),
        ("patch-tso-0", "0", "2026-11-01T00:00:00Z"),
    }  # fmt: skip
    assert len(found) == 9
    iperf3, make, tcpbench = found[3:6]
    assert iperf3.test == "iperf3.w1m/host-host/ipv4"
    assert [(value.metric, value.value, value.unit) for value in iperf3.values] == [
        ("throughput.receiver", 2e6, "bits/s"), ("throughput.sender", 3e6, "bits/s"),
    ]  # fmt: skip
    assert (make.test, make.values[0].metric, make.values[0].direction) == (
        "time.lp.make.j4/host-host/ipv4",
        "time.wall",
        "lower",
    )
    assert make.output == "tcp\n"
    assert tcpbench.problem == "FAIL Could not parse value"
    assert iperf3.committed is not None


def test_tests_that_differ_only_by_addresses_keep_them(tmp_path: Path) -> None:
    lines = [
        f"VALUE 1 bits/sec receiver\nPASS\tiperf3_-c{host}_-t10\tx\n" for host in ("10.3.4.5", "10.3.4.6", "fd00::5")
    ]
    file(tmp_path, "".join(lines), "2026-11-02T10:00:00Z/test.result")
    assert [one.test for one in read("test-result", tmp_path)] == [
        "iperf3.c10-3-4-5/host-host/ipv4", "iperf3.c10-3-4-6/host-host/ipv4", "iperf3/host-host/ipv6",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("hello world\n", "1: is neither a VALUE nor a result of a test: 'hello world'"),
        ("VALUE x bits/sec\nPASS\ta\n", "1: VALUE is not a number: 'x'"),
        ("VALUE 1\n", "1: a VALUE line has a number, a unit and a name"),
        ("VALUE 1 sec\n", "2: ends in VALUE lines without the test they are of"),
        ("PASS\ta\tb\n", "1: the test 'a' passed without a VALUE line before it"),
        ("VALUE 1 sec\nPASS\ta\nVALUE 1 sec\nPASS\ta\n", "4: the test 'a' has a result already"),
        ("VALUE 1 sec a\nVALUE 2 sec a\nPASS\tb\n", "3: gives the same metric twice"),
        ("", "0: has no result of a test"),
    ],
)
def test_what_is_wrong_with_a_test_result(tmp_path: Path, content: str, reason: str) -> None:
    file(tmp_path, content, "2026-11-02T10:00:00Z/test.result")
    found = problems("test-result", tmp_path)
    assert any(f"test.result:{reason}" in problem for problem in found), found


def test_the_error_for_a_result_without_a_date_states_what_is_missing(tmp_path: Path) -> None:
    assert "named by a date" in problems("test-result", file(tmp_path, RESULT, "test.result"))[0]
    assert "has no test.result" in problems("test-result", tmp_path / "other")[0]


PIECES = st.sampled_from(
    [
        "THROUGHPUT=1", "THROUGHPUT_UNITS=Trans/s", "VALUE 1 sec x", "PASS\ta\tb", "1 2 3 4 5 6", "nan", "{", "",
        "Throughput,Throughput Units", "1,10^6bits/s", '{"end": {"sum": {}}}', "value,test", "1,a/b", "\ufeff1",
        "MIGRATED UDP STREAM TEST from a AF_INET to",
    ]
)  # fmt: skip
CONTENTS = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=12).map(lambda some: "\n".join(some).encode()))


@pytest.mark.parametrize("form", sorted(FORMATS))
@given(content=CONTENTS)
@anything
def test_any_file_gives_records_or_problems(tmp_path: Path, form: str, content: bytes) -> None:
    path = file(tmp_path, content, "2026-11-02T10:00:00Z/test.result")
    found: list[Record] = []
    wrong: list[Problem] = []
    try:
        found = read(form, path, test=TEST)
    except ImportProblemsError as error:
        wrong = error.problems
    assert bool(found) != bool(wrong)
    assert all(problem.path == path and 0 <= problem.line <= content.count(b"\n") + 2 for problem in wrong)
    assert all(0 < value.value < 1e19 for record in found for value in record.values)


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_BYTES", 10)
    assert "is beyond" in problems("ministat", file(tmp_path, "1\n" * 20), test=TEST)[-1]
    monkeypatch.setattr(records, "MOST_PROBLEMS", 3)
    monkeypatch.setattr(records, "MOST_BYTES", 1000)
    assert len(problems("ministat", file(tmp_path, "x\n" * 20), test=TEST)) == 4


@given(st.text(max_size=100))
def test_a_slug_is_a_name_or_empty(text: str) -> None:
    found = slug(text)
    assert found == "" or (len(found) <= 64 and found.isascii() and found[0].isalnum() and found[-1].isalnum())
