# SPDX-License-Identifier: BSD-2-Clause
"""Copies of the rows of a database: objects that take seconds to make are made once for many tests."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from psycopg import sql


@dataclass(frozen=True)
class Rows:
    """The rows of each table, as text of PostgreSQL's COPY."""

    tables: dict[str, bytes]

    @classmethod
    def of_database(cls) -> Rows:
        """What the present transaction sees."""
        tables = {}
        with connection.cursor() as cursor:
            for name in connection.introspection.table_names(cursor):
                with cursor.copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(name))) as copy:
                    tables[name] = b"".join(copy)
        return cls(tables)

    def since(self, before: Rows) -> Rows:
        """The rows of the tables that were empty. Raises AssertionError if another table has changed."""
        changed = {name: rows for name, rows in self.tables.items() if rows != before.tables[name]}
        assert not any(before.tables[name] for name in changed)
        return Rows(changed)

    def insert(self) -> None:
        """Inserts the rows; the sequences of keys are beyond them, because a rollback does not reset one."""
        with connection.cursor() as cursor:
            for name, rows in self.tables.items():
                with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copy:
                    copy.write(rows)
