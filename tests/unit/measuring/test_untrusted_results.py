# SPDX-License-Identifier: BSD-2-Clause
"""Any result of a tool or a host is at worst a failed measurement with its raw output."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from perfweb.measuring import record, tools
from perfweb.measuring.planner import PlannedBoot
from perfweb.measuring.raw import RawMeasurement, RawSample
from perfweb.runs.invariants import violations
from perfweb.runs.models import Boot, BootState, Measurement, MeasurementState, Sample
from perfweb.runs.summaries import summarise
from tests.factories import create_queued_run, create_variants

pytestmark = pytest.mark.django_db

RR = "tcp.rr/host-host/ipv4"
TESTS = {
    "netperf": RR,
    "iperf3": "tcp.stream/host-host/ipv4",
    "simstack": "simulated.tcp.1/host-host/ipv4",
    "tcpbench": "tcpbench.1/host-host/ipv4",
}
DEEP = "[" * 100_000
HOSTILE = {
    "deep": DEEP,
    "deep in a key": f'{{"runs": {DEEP}',
    "long integer": f'{{"unit": "kilobytes/s", "runs": [{{"rate": {"9" * 5000}}}]}}',
    "infinite": '{"unit": "kilobytes/s", "runs": [{"rate": Infinity}]}',
    "no number": '{"unit": "kilobytes/s", "runs": [{"rate": NaN}]}',
    "other types": '{"unit": [], "runs": {"rate": []}}',
    "nul": "\0" * 100,
    "surrogate": "\ud800" * 100,
    "nothing": "",
    "NUL in a number": "THROUGHPUT=50\x0000\nTHROUGHPUT_UNITS=Trans/s\n",
    "beyond a double": "THROUGHPUT=1e999\nTHROUGHPUT_UNITS=Trans/s\n",
    "long number": f"THROUGHPUT={'9' * 5000}\nTHROUGHPUT_UNITS=Trans/s\n",
}


@pytest.fixture
def boot() -> Boot:
    run = create_queued_run()
    planned = PlannedBoot(0, 0, "deferred", "host-host", "netserver", ())
    return record.boot_started(run, create_variants(run)[0], planned)


def output(stdout: object = "THROUGHPUT=5000\nTHROUGHPUT_UNITS=Trans/s\n", **changes: object) -> dict[str, Any]:
    usual = {"rc": 0, "stdout": stdout, "stderr": "", "started": 1.8e9, "seconds": 1.01, "timed_out": False}
    return usual | changes


def measured(boot: Boot, *outputs: dict[str, Any], test: str = RR) -> Measurement:
    return record.measurement(RawMeasurement(boot.pk, test, 0, ["tool"], {}, list(map(RawSample.read, outputs))))


def kept(made: Measurement) -> str:
    return bytes(made.artefacts.get().content).decode()


@pytest.mark.parametrize("tool", TESTS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_output_is_a_failed_measurement(boot: Boot, tool: str, kind: str) -> None:
    made = measured(boot, output(HOSTILE[kind]), test=TESTS[tool])
    assert made.state == MeasurementState.FAILED
    assert made.reason
    assert Measurement.objects.get().pk == made.pk
    if HOSTILE[kind].isprintable() and HOSTILE[kind]:
        assert HOSTILE[kind] in kept(made)


@pytest.mark.parametrize(
    "error", [RecursionError, MemoryError, UnicodeError, KeyError, OverflowError, ZeroDivisionError]
)
@pytest.mark.parametrize("function", ["parse", "interim"])
def test_whatever_a_parser_raises_fails_its_sample_alone(
    boot: Boot, error: type[Exception], function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    true: Callable[..., object] = getattr(tools, function)

    def read(measure: object, text: str) -> object:
        if "5001" in text:
            raise error("planted")
        return true(measure, text)

    monkeypatch.setattr(tools, function, read)
    made = measured(boot, output(), output("THROUGHPUT=5001\nTHROUGHPUT_UNITS=Trans/s\n"), output())
    if function == "parse":
        assert made.state == MeasurementState.FAILED
        assert made.reason.startswith("1 of 3 samples failed; sample 1: netperf printed unreadable output: ")
        assert error.__name__ in made.reason
    assert [sample.index for sample in Sample.objects.filter(measurement=made).primary()][:1] == [0]
    assert "THROUGHPUT=5001" in kept(made)


VALUES = {
    "infinite": tools.Value("transactions", float("inf"), "transactions/s", "higher"),
    "no number": tools.Value("transactions", float("nan"), "transactions/s", "higher"),
    "square overflows": tools.Value("transactions", 1e300, "transactions/s", "higher"),
    "square underflows": tools.Value("transactions", 1e-300, "transactions/s", "higher"),
    "long unit": tools.Value("transactions", 5.0, "u" * 25, "higher"),
    "NUL in a unit": tools.Value("transactions", 5.0, "u\0", "higher"),
    "long metric": tools.Value("m" * 33, 5.0, "u", "higher"),
    "unknown direction": tools.Value("transactions", 5.0, "u", "sideways"),
}


@pytest.mark.parametrize("kind", VALUES)
def test_value_that_the_database_or_the_statistics_cannot_take_fails_its_sample(
    boot: Boot, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "parse", lambda *_: [VALUES[kind]])
    made = measured(boot, output(), output())
    assert made.state == MeasurementState.FAILED
    assert "2 of 2 samples failed; sample 0: netperf " in made.reason
    assert not Sample.objects.filter(measurement=made).exists()
    assert "THROUGHPUT=5000" in kept(made)
    summarise([boot.run_id])


def test_metric_that_a_tool_prints_twice_fails_the_measurement(boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    value = tools.Value("transactions", 5.0, "u", "higher")
    monkeypatch.setattr(tools, "parse", lambda *_: [value, value])
    made = measured(boot, output())
    assert made.state == MeasurementState.FAILED
    assert "cannot be stored" in made.reason
    assert "THROUGHPUT=5000" in kept(made)


STRANGE: dict[str, dict[str, object]] = {
    "gauges with NUL": {"gauges": {"load\0": "\0", "deep": {"\ud800": ["\udfff"]}}},
    "gauges that are no numbers": {"gauges": {"load": float("nan"), "steal": float("inf")}},
    "gauges that are a list": {"gauges": ["load"]},
    "time beyond the calendar": {"started": 1e300},
    "no time": {"started": None},
    "time that is no number": {"started": float("nan")},
    "endless": {"seconds": float("inf")},
    "seconds that are a text": {"seconds": "1 s"},
    "status that is a text": {"rc": "\0"},
    "void that is a number": {"void": 5},
    "output that is a list": {"stdout": ["a"]},
    "no output": {"stderr": None},
    "seconds beyond a double": {"seconds": 10**400},
}


HARMLESS = {"gauges with NUL", "gauges that are no numbers"}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_values_from_a_host_fail_their_sample_alone(boot: Boot, kind: str) -> None:
    made = measured(boot, output(), output(**STRANGE[kind]))
    if kind not in HARMLESS:
        assert made.reason.startswith("1 of 2 samples failed; sample 1: its host sent what is no sample: {")
        assert [sample.index for sample in Sample.objects.filter(measurement=made).primary()] == [0]
    assert "THROUGHPUT=5000" in kept(made)
    record.boot_ended(boot, BootState.STOPPED)
    assert violations() == []
    assert record.measurement(RawMeasurement(boot.pk, RR, 0, [], {})).pk == made.pk


def test_host_that_sends_no_sample_but_something_else(boot: Boot) -> None:
    sent: list[object] = [{}, {"stdout": "5"}, [], None, "5"]
    samples = list(map(RawSample.read, sent))
    environment = {"\0": float("nan")}
    raw = RawMeasurement(boot.pk, RR, 0, ["tool\0"], {"client\0": "\0"}, samples, environment=environment)
    made = record.measurement(raw)
    assert made.state == MeasurementState.FAILED
    assert made.reason == "5 of 5 samples failed; sample 0: its host sent what is no sample: {}"
    assert json.dumps({"stdout": "5"}) in kept(made)


def test_times_that_no_clock_has_fail_the_measurement(boot: Boot) -> None:
    made = record.measurement(RawMeasurement(boot.pk, RR, 0, ["tool"], {}, reason="unreachable", time=float("nan")))
    assert made.state == MeasurementState.FAILED
    assert "cannot be stored" in made.reason


def test_boot_that_prints_what_the_database_cannot_store(boot: Boot) -> None:
    record.boot_up(boot, {"commands": {"dut": ["a\0"]}, "boot_log": "\0\ud800"}, {"net\0": "\0", "deep": "\ud800"})
    record.counters(boot, {"sysctl": "\0\ud800"})
    record.debugger(boot, "\0")
    record.host_facts(boot.run, {"dut": {"group": "dut", "kernel": "6\0", "load": float("nan")}})
    record.boot_ended(boot, BootState.FAILED, "\0\ud800" * 9000, "\0\ud800", {"dut": "\0\ud800"})
    boot.refresh_from_db()
    assert boot.state == BootState.FAILED
