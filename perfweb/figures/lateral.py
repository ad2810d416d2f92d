# SPDX-License-Identifier: BSD-2-Clause
"""One query for many keys, such as the newest rows of each test."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from django.db import connection
from django.db.models import CharField, Func, QuerySet


def of_each(keys: Collection[tuple[str, ...]], query: Callable[..., QuerySet[Any, Any]]) -> list[tuple[Any, ...]]:
    """Return the rows of `query` for each of some keys, unordered: one query, none without keys.

    `query` gets an expression for each part of a key, and returns values. PostgreSQL evaluates it for each key by a
    lateral join, so that the limit of a query is for each key. A union of one query for each key gives the same rows;
    Django compiles, and PostgreSQL plans, each query of it.
    """
    if not keys:
        return []
    parts = [list(part) for part in zip(*keys, strict=True)]
    names = [f"part{number}" for number in range(len(parts))]
    found = query(*(Func(template=f"wanted.{name}", output_field=CharField()) for name in names))
    text, values = found.query.sql_with_params()
    arrays, columns = ", ".join(["%s::text[]"] * len(parts)), ", ".join(names)
    each = f"unnest({arrays}) AS wanted ({columns}) CROSS JOIN LATERAL ({text}) AS found"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT found.* FROM {each}", [*parts, *values])  # noqa: S608 (keys are parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
