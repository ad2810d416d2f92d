# SPDX-License-Identifier: BSD-2-Clause
"""The bench command measures each kind of row and stores the samples; the rates themselves are not checked."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.stack import bench, results
from tests.stack.bench_page import Measured, Result, Taken, page, report
from tests.stack.conditions import conditions
from tests.stack.control import Control, Look
from tests.stack.measures import CLIENT_CPU, SERVER_CPU
from tests.stack.rows import ROWS

KINDS = (
    "request/response, 1",
    "request/response, 1, IPv6",
    "request/response, 16, event loop",
    "connect+request+close, 8, event loop",
    "bulk in, 1 stream",
    "forward, tap",
    "forward, xdp",
    "memory: bulk, 64 K",
    "memory: UNIX request/response, 1",
    "memory: UNIX like MySQL, single",
    "memory: forward, fast",
)


def test_each_kind_of_row_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "BENCH", tmp_path)
    monkeypatch.setattr(bench, "ROWS", {name: ROWS[name] for name in KINDS})
    assert bench.main(["--quick"]) == 0
    document = json.loads((tmp_path / "stack.json").read_text(encoding="utf-8"))
    assert list(document["rows"]) == list(KINDS)
    for name, row in document["rows"].items():
        assert set(row["taken"]) == set(ROWS[name].sides)
        for (sample,) in row["taken"].values():
            assert sample["rate"] > 0
            speed, distance = sample["control"]
            assert speed > 0
            assert distance > 0 or CLIENT_CPU == SERVER_CPU
            assert (sample["cpu"] or 0) >= 0
            assert (sample["cpu"] is not None) == bool(row["cpu_unit"])
    for settings in document["linux"].values():
        assert settings["tcp_congestion_control"] == "cubic"
        assert settings["tcp-segmentation-offload"] in ("on", "off")
    table = capsys.readouterr().out
    assert all(name in table for name in KINDS)
    assert "request/response, 1, IPv6: " in table
    assert f"{sum(len(ROWS[name].sides) for name in KINDS)} samples; " in table


def test_a_row_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["teleport"])
    assert "no such row; there are: bulk in, 1 stream" in capsys.readouterr().err


def test_the_page_is_not_made_of_some_rows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["--write", "memory"])
    assert "--write makes the whole page" in capsys.readouterr().err


def _taken(*rates: float) -> list[Taken]:
    return [Taken(rate, None, Look(100.0, 300.0)) for rate in rates]


def test_the_page_has_the_table_and_the_method() -> None:
    taken = {"stack": _taken(19.0, 20.0, 24.0), "linux": _taken(10.0, 10.0, 10.0)}
    row = Result("Gbit/s", "", 3, Control(0), taken)
    text = page(Measured({"bulk in, 1 stream": row}, row.control), rounds=3, seconds=1.5)
    assert "20.000  ±1.000    10.000  ±0.000   2.00" in text
    assert "3 rounds" in text
    assert "samples of 1.5 s" in text
    assert "6 samples; 0 void" in text


def test_how_near_ipv6_is_to_ipv4_has_an_interval() -> None:
    control = Control(0)

    def row(*rates: float) -> Result:
        return Result("Gbit/s", "", 5, control, {"stack": _taken(*rates)})

    rows = {
        "bulk in, 1 stream": row(19.0, 20.0, 21.0, 20.0, 5.0),
        "bulk in, 1 stream, IPv6": row(18.0, 19.0, 18.0, 19.0, 18.0),
        "bulk out, 1 stream": row(20.0, 20.0),
        "bulk out, 1 stream, IPv6": row(17.8, 17.8),
    }
    text = report(Measured(rows, control))
    assert "bulk in, 1 stream, IPv6: 0.90 of IPv4 (0.86 to 3.60), within 10%" in text
    assert "bulk out, 1 stream, IPv6: 0.89 of IPv4 (0.89 to 0.89), not within 10%" in text


@dataclass
class Script:
    """A row with the state of its control, whose rates are numbers of the samples taken."""

    result: Result
    speeds: list[float]
    distances: list[float] = field(default_factory=list)

    def take(self, name: str, side: str) -> Taken:
        assert (name, side) == ("memory: forward", "stack")
        look = Look(self.speeds.pop(0), self.distances.pop(0) if self.distances else 300.0)
        self.result.control.learn(look)
        return Taken(float(len(self.result.taken.get(side, [])) + 1), None, look)

    def fill(self) -> Measured:
        results = {"memory: forward": self.result}
        bench.fill(results, self.result.control, self.take)
        assert not self.speeds
        return Measured(results, self.result.control)


def _row(patience: float) -> Result:
    return Result("Mpps/core", "", 2, Control(patience))


def test_what_was_measured_on_busy_cpus_is_void_and_measured_again() -> None:
    script = Script(_row(3600), [95.0, 60.0, 80.0, 100.0])
    text = report(script.fill())
    assert script.result.rates("stack") == [4.0, 1.0]
    assert "4 samples; 2 void" in text
    assert "no quiet time" not in text


def test_what_was_measured_on_cpus_far_apart_is_void_and_measured_again() -> None:
    script = Script(_row(3600), [95.0, 100.0, 94.0, 93.0], [300.0, 500.0, 450.0, 400.0])
    text = report(script.fill())
    assert script.result.rates("stack") == [1.0, 4.0]
    assert "4 samples; 2 void" in text
    assert "no quiet time" not in text


def test_a_sample_is_void_as_soon_as_the_cpus_were_faster_at_another_time() -> None:
    script = Script(_row(3600), [60.0, 100.0, 95.0])
    assert "3 samples; 1 void" in report(script.fill())
    assert script.result.rates("stack") == [2.0, 3.0]


def test_the_samples_with_min_disturbance_count_and_are_named_when_the_time_is_over() -> None:
    script = Script(_row(0), [100.0, 60.0])
    text = report(script.fill())
    assert script.result.rates("stack") == [1.0, 2.0]
    assert "2 samples; 0 void" in text
    assert "no quiet time for these, which count: memory: forward (1)" in text


def test_a_later_call_goes_on_with_what_was_measured() -> None:
    machine = {"seconds": 0.5, "sources": "1234"}
    script = Script(_row(0), [100.0, 95.0])
    document = json.loads(json.dumps(bench.document(script.fill(), machine)))
    resumed = bench.begin(["memory: forward"], 3, Control(0))
    bench.resume(resumed, document, machine)
    assert resumed.control.best == Look(100.0, 300.0)
    script = Script(resumed.results["memory: forward"], [99.0])
    script.fill()
    assert script.result.rates("stack") == [1.0, 3.0, 2.0]


def test_what_was_measured_of_something_else_is_not_gone_on_with() -> None:
    document = bench.document(Measured({}, Control(0)), {"seconds": 0.5, "sources": "1234", "cpus": 2})
    with pytest.raises(ValueError, match="with another seconds, sources: leave out --resume"):
        bench.resume(bench.begin([], 1, Control(0)), document, {"seconds": 2.0, "sources": "5678", "cpus": 2})


def test_nothing_that_was_measured_is_dropped_by_going_on_with_some_of_it() -> None:
    document = bench.document(bench.begin(["memory: forward", "memory: forward, fast"], 1, Control(0)), {})
    with pytest.raises(ValueError, match="has memory: forward, fast, too: name these"):
        bench.resume(bench.begin(["memory: forward"], 1, Control(0)), document, {})


def test_there_must_be_something_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "BENCH", tmp_path)
    with pytest.raises(SystemExit):
        bench.main(["--resume"])
    assert "nothing has been measured yet" in capsys.readouterr().err


def test_what_was_measured_is_kept_when_the_bench_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(results, "BENCH", tmp_path)
    measured = bench.begin(["memory: forward"], 1, Control(0))

    def interrupted(*_: object) -> None:
        measured.results["memory: forward"].taken["stack"] = _taken(7.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "fill", interrupted)
    monkeypatch.setattr(bench, "begin", lambda *_: measured)
    assert bench.main(["--rounds", "1", "--seconds", "0.5", "memory: forward"]) == 130
    assert "--resume goes on" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setattr(results, "BENCH", tmp_path)
    resumed = bench.begin(["memory: forward"], 1, Control(0))
    bench.resume(resumed, results.kept("stack"), conditions(0.5, *bench.MODULES))
    assert resumed.results["memory: forward"].rates("stack") == [7.0]


def test_what_an_earlier_call_kept_stays_if_the_bench_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no lab")

    monkeypatch.setattr(results, "BENCH", tmp_path)
    monkeypatch.setattr(bench, "Topology", refuse)
    results.keep("stack", {"of": "before"})
    with pytest.raises(OSError, match="no lab"):
        bench.measure(bench.begin(["memory: forward"], 1, Control(0)), 0.5)
    assert results.kept("stack") == {"of": "before"}
