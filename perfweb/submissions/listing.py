# SPDX-License-Identifier: BSD-2-Clause
"""Submissions as rows of a list: each with its newest run and that run's verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from perfweb.runs.models import Run
from perfweb.submissions.models import Submission
from perfweb.verdicts.run_verdicts import PairVerdicts, verdicts

Row = tuple[Submission, Run | None, Sequence[PairVerdicts]]


def to_list() -> QuerySet[Submission]:
    """Select what listed() needs, the newest first."""
    found = Submission.objects.select_related("author", "testbed").defer("patch", "plan", "stages")
    return found.prefetch_related("runs__variants")


def listed(rows: Sequence[Submission]) -> list[Row]:
    """Return each submission with its newest run and the verdicts of that: two queries."""
    newest = {row.number: run for row in rows for run in row.runs.all()[:1]}
    judged = {run.pk: pairs for run, pairs in verdicts(list(newest.values()))}
    pairs = ((row, newest.get(row.number)) for row in rows)
    return [(row, run, judged[run.pk] if run else ()) for row, run in pairs]
