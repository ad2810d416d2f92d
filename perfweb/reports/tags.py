# SPDX-License-Identifier: BSD-2-Clause
"""Entity tags (RFC 9110, section 8.8.3) of what is said about runs, found without making the answer.

A run that is over says the same until it is resumed, which is a step in its history, or until its samples are
summarised anew.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest

from perfweb.reports.environment import earlier_run
from perfweb.runs.models import FINAL_STATES, Run, RunTransition, Summary
from perfweb.version import code_version


def tag_of_run(request: HttpRequest, number: int) -> str | None:
    """Return the tag of an answer that says nothing but what is known of one run: one query. None while something works
    on the run, and where there is none.
    """
    return _tag(request, _state(number))


def tag_of_comparison(request: HttpRequest, number: int, a: str, b: str) -> str | None:  # noqa: ARG001 (in the address)
    """Return the tag of the comparison of two variants of a run."""
    return tag_of_run(request, number)


def tag_of_page(request: HttpRequest, number: int) -> str | None:
    """Return the tag of the page of a run, which also tells what changed since the run before: three queries."""
    run = Run.objects.filter(pk=number).first()
    if run is None:
        return None
    earlier = earlier_run(run)
    return _tag(request, _state(number), *([_state(earlier.pk)] if earlier else []))


def _state(number: int) -> tuple[Any, ...] | None:
    """What changes when anything does that is known of a run that is over."""
    step = RunTransition.objects.filter(run=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    summary = Summary.objects.filter(run=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    over = Run.objects.filter(pk=number, state__in=FINAL_STATES)
    return over.values_list("pk", Subquery(step), Subquery(summary)).first()


def _tag(request: HttpRequest, *states: tuple[Any, ...] | None) -> str | None:
    if None in states:
        return None
    known = f"{code_version()} {states} {request.get_full_path()}"
    return f'"{hashlib.sha256(known.encode()).hexdigest()[:32]}"'
