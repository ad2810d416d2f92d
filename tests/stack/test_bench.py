# SPDX-License-Identifier: BSD-2-Clause
"""The bench command measures each kind of row and keeps the samples; what it measures is not looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.stack import bench

KINDS = ("request/response, 1", "CPU, bulk in", "memory: bulk, 64 K", "memory: forward, fast")


def test_each_kind_of_row_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "VAR", tmp_path)
    monkeypatch.setattr(bench, "ROWS", {name: bench.ROWS[name] for name in KINDS})
    assert bench.main(["--quick"]) == 0
    rows = json.loads((tmp_path / "bench" / "stack.json").read_text(encoding="utf-8"))["rows"]
    assert list(rows) == list(KINDS)
    for name, row in rows.items():
        assert set(row["samples"]) == set(bench.ROWS[name].sides)
        assert all(samples and min(samples) >= 0 for samples in row["samples"].values())
    table = capsys.readouterr().out
    assert all(name in table for name in KINDS)


def test_a_row_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["teleport"])
    assert "no such row; there are: bulk in, 1 stream" in capsys.readouterr().err
