# SPDX-License-Identifier: BSD-2-Clause
"""Many rows at once, through PostgreSQL's COPY (https://www.postgresql.org/docs/15/sql-copy.html)."""

import itertools
import json
from collections.abc import Iterable
from typing import Any

from django.db import connection, models


def copy_rows(rows: Iterable[models.Model]) -> int:
    """Write unsaved objects of one model into its table, with their keys where they have some; returns how many.

    Several times as fast as `bulk_create`, and the constraints of the table hold as for that. The objects do not learn
    their keys, and none gets a value that Django would make when it saves it (`auto_now_add`). Raises
    django.db.IntegrityError where one breaks a constraint; then nothing is written.
    """
    rows = iter(rows)
    if (first := next(rows, None)) is None:
        return 0
    left_out = {first._meta.pk} if first.pk is None else set()
    concrete = [field for field in first._meta.concrete_fields if field not in left_out]
    fields = [field for field in concrete if not getattr(field, "generated", False)]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    names = [str(field.attname) for field in fields]
    as_text = [isinstance(field, models.JSONField) for field in fields]
    count = 0
    statement = f"COPY {first._meta.db_table} ({columns}) FROM STDIN"
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in itertools.chain([first], rows):
            values = (getattr(row, name) for name in names)
            copy.write_row([_plain(value, text) for value, text in zip(values, as_text, strict=True)])
            count += 1
    return count


def _plain(value: Any, as_json: bool) -> Any:
    return json.dumps(value) if as_json else value
