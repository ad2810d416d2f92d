# SPDX-License-Identifier: BSD-2-Clause
"""Entity tags (RFC 9110, section 8.8.3) of pages and responses, computed without rendering them.

A finished run does not change until it is resumed, which is a step in its history, or until its samples are summarised
anew. A response about many runs is unchanged while nothing is written.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import connection
from django.db.models import Count, Max, OuterRef, Subquery
from django.http import HttpRequest

from perfweb.runs.models import FINAL_STATES, Calibration, Run, RunTransition, Summary
from perfweb.verdicts.environment import earlier_run
from perfweb.version import code_version

_SNAPSHOT = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time(), pg_current_xact_id_if_assigned()"


def tag_of_run(request: HttpRequest, number: int, **_: object) -> str | None:
    """Return the tag of a response about one run only: one query. None during the run, or if it does not exist."""
    return _tag(request, _state(number))


def tag_of_page(request: HttpRequest, number: int) -> str | None:
    """Return the tag of the page of a run, which also has the changes since the run before, and its testbed's
    calibration: four queries.
    """
    run = Run.objects.filter(pk=number).first()
    if run is None:
        return None
    earlier = earlier_run(run)
    calibrated = Calibration.objects.filter(run__testbed=run.testbed_id).aggregate(newest=Max("pk"), count=Count("pk"))
    return _tag(request, _state(number), tuple(calibrated.values()), *([_state(earlier.pk)] if earlier else []))


def tag_of_database(request: HttpRequest, **_: object) -> str | None:
    """Return the tag of a response that depends on the database only: one query, which reads no table.

    A transaction that changes anything is in no snapshot taken before its end. So two equal snapshots of a server that
    was not restarted show the same data (PostgreSQL, "Transaction ID and Snapshot Information Functions"). During
    measurements tags are short-lived. None within a transaction that has written itself, because it sees more than its
    snapshot.
    """
    state = database_state()
    return _tag(request, (state,) if state else None)


def database_state() -> str | None:
    """Return a digest of the database's state and the version of the code; None within a transaction that has written.

    One query, which reads no table.
    """
    with connection.cursor() as cursor:
        cursor.execute(_SNAPSHOT)
        *seen, writes = cursor.fetchone()
    return None if writes else hashlib.sha256(f"{code_version()} {seen}".encode()).hexdigest()[:32]


def _state(number: int) -> tuple[Any, ...] | None:
    """Values that change with any change of a finished run."""
    step = RunTransition.objects.filter(run=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    summary = Summary.objects.filter(run=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    over = Run.objects.filter(pk=number, state__in=FINAL_STATES)
    return over.values_list("pk", Subquery(step), Subquery(summary)).first()


def _tag(request: HttpRequest, *states: tuple[Any, ...] | None) -> str | None:
    if None in states:
        return None
    known = f"{code_version()} {states} {request.get_full_path()}"
    return f'"{hashlib.sha256(known.encode()).hexdigest()[:32]}"'
