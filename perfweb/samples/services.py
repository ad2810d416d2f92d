# SPDX-License-Identifier: BSD-2-Clause
"""Loads and removes all samples."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from perfweb.lab.models import Testbed
from perfweb.samples.bundles import SUFFIX, Loaded, load
from perfweb.samples.tables import TABLES, Table

BUNDLES = Path(__file__).parent / "bundles"


def loaded() -> bool:
    """Whether the database has samples."""
    return Testbed.objects.exclude(sample="").exists()


@transaction.atomic
def load_all() -> list[Loaded]:
    """Load all bundles or none, and return what each has brought. Raises SampleError."""
    return [load(path) for path in sorted(BUNDLES.glob(f"*{SUFFIX}"))]


@transaction.atomic
def remove() -> int:
    """Delete all samples; return the number of deleted rows. What they share with other results is kept."""
    testbeds = list(Testbed.objects.exclude(sample="").values_list("pk", flat=True))
    shared = {table.label: list(table.rows(testbeds).values_list("pk", flat=True)) for table in TABLES if table.shared}
    deleted = 0
    for table in reversed(TABLES):
        rows = table.rows(testbeds) if not table.shared else _unused(table, shared[table.label])
        deleted += rows.delete()[0]
    return deleted


def _unused(table: Table, keys: Iterable[int]) -> QuerySet[Any]:
    """Select shared rows that nothing refers to any more, and of accounts and repositories only those of samples."""
    uses = {f"{lookup.partition('__')[0]}__isnull": True for lookup in table.lookups}
    return table.model._default_manager.filter(table.mark or Q(), pk__in=list(keys), **uses)
