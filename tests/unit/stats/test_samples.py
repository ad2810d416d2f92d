# SPDX-License-Identifier: BSD-2-Clause
"""Recomputing verdicts from a downloaded table."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfweb.stats.__main__ import main
from perfweb.stats.samples import COLUMNS, read_samples


def write(path: Path, *rows: tuple[object, ...]) -> Path:
    lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def rows(variant: str, mean: float, boots: int = 3) -> list[tuple[object, ...]]:
    return [
        (variant, f"{variant}{boot}", "tcp.rr", "transactions", mean + boot + value, "1/s", "higher", "false", "ok")
        for boot in range(boots)
        for value in (-1, 0, 1)
    ]


def test_samples_are_read_boot_by_boot_without_those_that_do_not_count(tmp_path: Path) -> None:
    ignored = ("a", 0, "tcp.rr", "transactions", 1, "1/s", "higher")
    table = write(tmp_path / "s.csv", (*ignored, "true", "ok"), (*ignored, "false", "failed"), *rows("a", 100, 2))
    (metric,) = read_samples(table)
    assert (metric.test, metric.unit, metric.direction) == ("tcp.rr", "1/s", "higher")
    assert metric.variants == {"a": [[99, 100, 101], [100, 101, 102]]}


@pytest.mark.parametrize(("column", "marked", "plain"), [("void", "steal: 12 %", ""), ("sentinel", "true", "false")])
def test_samples_that_are_void_or_of_a_sentinel_are_left_out(
    tmp_path: Path, column: str, marked: str, plain: str
) -> None:
    table = write(tmp_path / "s.csv", *rows("a", 100, 2))
    head, first, *others = table.read_text(encoding="utf-8").splitlines()
    lines = [f"{head},{column}", f"{first},{marked}", *(f"{line},{plain}" for line in others)]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (metric,) = read_samples(table)
    assert metric.variants == {"a": [[100, 101], [100, 101, 102]]}


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no column boot"), ("run,value\n1,2\n", "no column boot")],
)
def test_another_table_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_samples(tmp_path / "s.csv")


def test_a_value_that_is_no_number_is_named_by_its_line(tmp_path: Path) -> None:
    bad = ("a", 0, "tcp.rr", "transactions", "fast", "1/s", "higher", "false", "ok")
    with pytest.raises(ValueError, match="line 2: 'fast' is no number"):
        read_samples(write(tmp_path / "s.csv", bad))


def test_the_verdict_is_printed_with_second_opinions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write(tmp_path / "s.csv", *rows("a", 100), *rows("b", 120)))]) == 0
    text = capsys.readouterr().out
    assert "verdict            faster, margin 2 %, confidence 95 %" in text
    for name in ("Welch", "Hodges-Lehmann", "permutation", "bootstrap median", "scatter", "sequential", "outliers"):
        assert name in text


def test_a_variant_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(write(tmp_path / "s.csv", *rows("a", 100), *rows("b", 120))), "--variant", "c"]) == 1
    assert "has no variant c: there is a, b" in capsys.readouterr().err
    assert main([str(tmp_path / "nothing.csv")]) == 1
