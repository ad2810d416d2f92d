# SPDX-License-Identifier: BSD-2-Clause
"""Tables as CSV, JSON and Parquet have the same data, always in the same bytes, and without all rows in memory."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfweb.rawdata.tables import FORMATS, PARQUET_ROWS, Column, Kind, Row, Table, guarded

COLUMNS = (
    Column("name", Kind.TEXT, "a text"),
    Column("count", Kind.INTEGER, "a number of things"),
    Column("value", Kind.NUMBER, "in transactions/s"),
    Column("good", Kind.FLAG, "yes or no"),
    Column("at", Kind.TIME, "UTC"),
)
texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
times = st.datetimes(timezones=st.just(UTC))
rows = st.tuples(
    st.none() | texts,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.booleans(),
    st.none() | times,
)


def written(form: str, found: list[Any]) -> bytes:
    return b"".join(FORMATS[form].write(Table(COLUMNS, lambda: iter(found))))


def from_csv(row: dict[str, str]) -> tuple[object, ...]:
    return (
        row["name"].removeprefix("'"),
        int(row["count"]) if row["count"] else None,
        float(row["value"]) if row["value"] else None,
        {"true": True, "false": False, "": None}[row["good"]],
        datetime.fromisoformat(row["at"]) if row["at"] else None,
    )


@settings(max_examples=40)
@given(st.lists(rows, max_size=8))
def test_every_format_has_every_cell(found: list[tuple[Any, ...]]) -> None:
    table = csv.DictReader(io.StringIO(written("csv", found).decode(), newline=""))
    # CSV cannot distinguish an empty text from none.
    assert [from_csv(row) for row in table] == [(row[0] or "", *row[1:]) for row in found]
    times_as_text = [(*row[:4], row[4].isoformat() if row[4] else None) for row in found]
    assert [tuple(row.values()) for row in json.loads(written("json", found))] == times_as_text
    parquet = pq.read_table(io.BytesIO(written("parquet", found)))
    assert [tuple(row.values()) for row in parquet.to_pylist()] == found


def test_parquet_has_descriptions_of_columns() -> None:
    schema = pq.read_schema(io.BytesIO(written("parquet", [])))
    assert schema.names == [column.name for column in COLUMNS]
    assert schema.field("value").metadata == {b"meaning": b"in transactions/s"}


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1"])
def test_a_text_that_looks_like_a_formula_is_none_in_a_spreadsheet(text: str) -> None:
    (row,) = csv.DictReader(io.StringIO(written("csv", [(text, -1, -0.5, None, None)]).decode(), newline=""))
    assert row["name"] == "'" + text
    assert (row["count"], row["value"]) == ("-1", "-0.5")


@given(texts)
def test_guarded_texts_can_be_distinguished(text: str) -> None:
    assert guarded(text).removeprefix("'") == text
    assert not guarded(text).startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("form", FORMATS)
def test_memory_does_not_grow_with_the_number_of_rows(form: str) -> None:
    """None of the 150 000 rows is read long before it is written."""
    total, read = 150_000, 0

    def many() -> Iterator[Row]:
        nonlocal read
        for number in range(total):
            read += 1
            yield f"row {number % 50}", number, number / 7, number % 2 == 0, None

    pieces = FORMATS[form].write(Table(COLUMNS, many))
    tracemalloc.start()
    try:
        size = len(next(pieces))
        assert read <= PARQUET_ROWS
        assert size < 8_000_000
        size += sum(map(len, pieces))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == total
    assert peak < 24_000_000


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_rows_give_the_same_bytes(form: str) -> None:
    found = [("a", number, number / 3, True, datetime(2026, 11, 21, tzinfo=UTC)) for number in range(PARQUET_ROWS + 5)]
    assert written(form, found) == written(form, found)
