# SPDX-License-Identifier: BSD-2-Clause
"""Many rows at once, through PostgreSQL's COPY (https://www.postgresql.org/docs/15/sql-copy.html)."""

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import connection, models

from perfweb.runs.models import Sample

SampleRow = tuple[int, int, str, float, str, str, bool, float, str]
"""Key of the measurement, index, metric, value, unit, direction, whether discarded, seconds, reason if void or ""."""

_SAMPLE = ("measurement_id", "index", "metric", "value", "unit", "direction", "discarded", "seconds", "void")
_LINES_AT_ONCE = 2000
# Characters that COPY's text format treats specially.
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _text(value: str) -> str:
    return value.translate(_ESCAPED)


_WRITTEN: dict[type, Callable[[Any], str]] = {
    str: _text,
    int: int.__repr__,
    float: float.__repr__,  # all digits, also of NumPy's numbers
    bool: lambda value: "t" if value else "f",
    type(None): lambda _: "\\N",
    datetime: datetime.isoformat,
    bytes: lambda value: f"\\\\x{value.hex()}",
}


def copy_rows(rows: Iterable[models.Model]) -> int:
    """Write unsaved objects of one model into its table, with their keys if they have some; return the number.

    The objects do not get their keys, nor a value that Django would set when it saves them (`auto_now_add`). Otherwise
    like copy_values().
    """
    rows = iter(rows)
    if (first := next(rows, None)) is None:
        return 0
    left_out = {first._meta.pk} if first.pk is None else set()
    concrete = [field for field in first._meta.concrete_fields if field not in left_out]
    fields = [field for field in concrete if not getattr(field, "generated", False)]
    names = [str(field.attname) for field in fields]
    json_fields = {str(field.attname) for field in fields if isinstance(field, models.JSONField)}

    def values(row: models.Model) -> list[Any]:
        return [json.dumps(getattr(row, name)) if name in json_fields else getattr(row, name) for name in names]

    return copy_values(type(first), names, map(values, itertools.chain([first], rows)))


def copy_samples(rows: Iterable[SampleRow]) -> int:
    """Write samples; return the number. All samples are stored by this function: of runs, imports, and generated
    results.
    """
    return copy_values(Sample, _SAMPLE, rows)


def copy_values(model: type[models.Model], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write rows of values, one for each of the fields in `names`, into the table of a model; return the number.

    Ten times as fast as `bulk_create`, with the same checks of the table's constraints. Values are texts, numbers,
    times, bytes and None. Raises django.db.IntegrityError if a row breaks a constraint; then nothing is written.
    """
    columns = {str(field.attname): field.column for field in model._meta.concrete_fields}
    listed = ", ".join(f'"{columns[name]}"' for name in names)
    statement = f"COPY {model._meta.db_table} ({listed}) FROM STDIN"
    # A value of a derived type, such as a choice of an enumeration, is written like its base.
    lines = ("\t".join([_WRITTEN.get(type(value), _derived)(value) for value in row]) for row in rows)
    count = 0
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        while some := list(islice(lines, _LINES_AT_ONCE)):
            copy.write("\n".join(some) + "\n")
            count += len(some)
    return count


def _derived(value: object) -> str:
    """Write a value whose type is derived from a known one. Raises TypeError for any other."""
    for known, written in _WRITTEN.items():
        if isinstance(value, known):
            return written(value)
    raise TypeError(f"{type(value).__name__} cannot be copied")
