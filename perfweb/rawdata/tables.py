# SPDX-License-Identifier: BSD-2-Clause
"""Tables as CSV, JSON or Parquet, written some thousand rows at a time, so that memory use does not grow with length.

The same rows always give the same bytes, which lets a broken download be continued.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import Any

ROWS_AT_ONCE = 4096
"""Rows in memory at once."""

PARQUET_ROWS = 4 * ROWS_AT_ONCE
"""Rows of a Parquet row group: fewer would compress badly."""


class Kind(StrEnum):
    """The type of a column; a cell of any kind can be None, which CSV writes as an empty text."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "flag"
    TIME = "time"


@dataclass(frozen=True)
class Column:
    """A column with its meaning, including the unit if it has one."""

    name: str
    kind: Kind
    meaning: str


Row = Sequence[Any]


@dataclass(frozen=True)
class Table:
    """Columns, and a function that reads the rows from the first one on."""

    columns: Sequence[Column]
    rows: Callable[[], Iterator[Row]]


@dataclass(frozen=True)
class Format:
    """A way to write tables."""

    content_type: str
    write: Callable[[Table], Iterator[bytes]]


def _csv(table: Table) -> Iterator[bytes]:
    """RFC 4180 with LF at the end of lines. Numbers have all their digits, flags are true and false."""
    yield (",".join(column.name for column in table.columns) + "\n").encode()
    for rows in _groups(table.rows(), ROWS_AT_ONCE):
        yield "".join(",".join(map(_csv_cell, row)) + "\n" for row in rows).encode()


def _csv_cell(cell: object) -> str:
    """Format one cell; Python's own writer leaves a lone CR unquoted, which readers treat as the end of a line."""
    if isinstance(cell, str):
        text = guarded(cell)
        return f'"{text.replace(_QUOTE, _QUOTE * 2)}"' if _SPECIAL.search(text) else text
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return _time(cell)
    return "" if cell is None else str(cell)


_QUOTE = '"'
_SPECIAL = re.compile(r'[,"\r\n]')
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


def guarded(text: str) -> str:
    """Return a text that no spreadsheet treats as a formula: an apostrophe precedes one that begins like it.

    https://owasp.org/www-community/attacks/CSV_Injection has the list of characters. A text that begins with an
    apostrophe gets another one, so that perfweb.stats.samples can undo it. Cells with numbers are never changed.
    """
    return "'" + text if text.startswith(_FORMULA) else text


def _json(table: Table) -> Iterator[bytes]:
    """An array with an object for each row, one on a line (RFC 8259)."""
    names = [column.name for column in table.columns]
    begin = "[\n"
    for rows in _groups(table.rows(), ROWS_AT_ONCE):
        lines = (json.dumps(dict(zip(names, map(_json_cell, row), strict=True)), ensure_ascii=False) for row in rows)
        yield (begin + ",\n".join(lines)).encode()
        begin = ",\n"
    yield b"\n]\n" if begin == ",\n" else b"[]\n"


def _json_cell(cell: object) -> object:
    return _time(cell) if isinstance(cell, datetime) else cell


def _parquet(table: Table) -> Iterator[bytes]:
    """A file of https://parquet.apache.org, with the description of each column."""
    # Imported here, because it takes a tenth of a second and tens of megabytes.
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        Kind.TEXT: pa.string(),
        Kind.INTEGER: pa.int64(),
        Kind.NUMBER: pa.float64(),
        Kind.FLAG: pa.bool_(),
        Kind.TIME: pa.timestamp("us", tz="UTC"),
    }
    fields = [pa.field(name.name, types[name.kind], metadata={"meaning": name.meaning}) for name in table.columns]
    schema = pa.schema(fields)
    output = _Output()
    writer = pq.ParquetWriter(pa.PythonFile(output, mode="w"), schema)
    for rows in _groups(table.rows(), PARQUET_ROWS):
        columns = zip(*rows, strict=True)
        arrays = [pa.array(cells, type=field.type) for cells, field in zip(columns, schema, strict=True)]
        writer.write_batch(pa.record_batch(arrays, schema=schema))
        yield output.taken()
    writer.close()
    yield output.taken()


class _Output(io.RawIOBase):
    """A file whose content is taken away piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        self._length += len(self._pieces[-1])
        return len(self._pieces[-1])

    def tell(self) -> int:
        return self._length

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


FORMATS = {
    "csv": Format("text/csv; charset=utf-8", _csv),
    "json": Format("application/json", _json),
    "parquet": Format("application/vnd.apache.parquet", _parquet),
}


def _groups(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    while group := list(islice(rows, size)):
        yield group


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
