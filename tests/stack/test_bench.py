# SPDX-License-Identifier: BSD-2-Clause
"""The bench command measures each kind of row and keeps the samples; what it measures is not looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.stack import bench

KINDS = (
    "request/response, 1",
    "request/response, 1, IPv6",
    "request/response, 16, event loop",
    "connect+request+close, 8",
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
    monkeypatch.setattr(bench, "VAR", tmp_path)
    monkeypatch.setattr(bench, "ROWS", {name: bench.ROWS[name] for name in KINDS})
    assert bench.main(["--quick"]) == 0
    document = json.loads((tmp_path / "bench" / "stack.json").read_text(encoding="utf-8"))
    assert list(document["rows"]) == list(KINDS)
    for name, row in document["rows"].items():
        assert set(row["samples"]) == set(bench.ROWS[name].sides)
        assert set(row["cpu"]) == (set(bench.ROWS[name].sides) if row["cpu_unit"] else set())
        assert all(samples and min(samples) >= 0 for samples in (*row["samples"].values(), *row["cpu"].values()))
    for settings in document["machine"]["linux"].values():
        assert settings["tcp_congestion_control"] == "cubic"
        assert settings["tcp-segmentation-offload"] in ("on", "off")
    table = capsys.readouterr().out
    assert all(name in table for name in KINDS)
    assert "request/response, 1, IPv6: " in table


def test_a_row_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["teleport"])
    assert "no such row; there are: bulk in, 1 stream" in capsys.readouterr().err


def test_the_page_is_not_made_of_some_rows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["--write", "memory"])
    assert "--write makes the whole page" in capsys.readouterr().err


def test_the_page_has_the_table_and_says_how_it_was_measured() -> None:
    row = bench.Result("Gbit/s", "", samples={"stack": [19.0, 20.0, 24.0], "linux": [10.0, 10.0, 10.0]})
    text = bench.page({"bulk in, 1 stream": row}, rounds=3, seconds=1.5)
    assert "20.000  ±1.000    10.000  ±0.000   2.00" in text
    assert "3 rounds" in text
    assert "samples of 1.5 s" in text
