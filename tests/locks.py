# SPDX-License-Identifier: BSD-2-Clause
"""Locks of PostgreSQL."""

from django.db import connection


def waiting() -> int:
    """Return the number of locks that transactions wait for."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])
