# SPDX-License-Identifier: BSD-2-Clause
"""The published experiments that the service repeats, with their newest runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.db.models import Case, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from perfweb.headers import revalidated
from perfweb.reports.contention import Contention, moved
from perfweb.reports.published import Effect, Experiment, Published, Row, beside, experiments
from perfweb.reports.recorded import Recorded, recorded
from perfweb.runs.models import Run, RunState
from perfweb.verdicts.tags import tag_of_database


@dataclass(frozen=True)
class Repeated:
    """A run that repeats an experiment, and the published results beside its own."""

    run: Run
    published: Published


@dataclass(frozen=True)
class Reproduction:
    """An experiment with its newest run on real machines, and on the simulated one: None before the first."""

    experiment: Experiment
    measured: Repeated | None
    simulated: Repeated | None

    @property
    def recorded(self) -> list[Recorded]:
        """What the documentation has of it."""
        return recorded(self.experiment.year)

    @property
    def contention(self) -> Contention | None:
        """Where contention moved: what was published, and what was measured if there is a run; None without either."""
        if self.measured:
            return self.measured.published.contention
        return moved({}, self.experiment.contention) if self.experiment.contention else None

    @cached_property
    def rows(self) -> list[tuple[Effect, Row | None, Row | None]]:
        """The published effects, each with what was measured and simulated."""
        measured, simulated = _by_effect(self.measured), _by_effect(self.simulated)
        return [(one, measured.get(one), simulated.get(one)) for one in self.experiment.effects]


@require_safe
@cache_control(no_cache=True)
@revalidated(tag_of_database)
def reproductions(request: HttpRequest) -> HttpResponse:
    """Show each published experiment, the oldest first, beside the newest finished run of its plan."""
    found = experiments()
    newest = _newest([plan for one in found for plan in (one.name, one.simulated) if plan])
    rows = [Reproduction(one, newest.get(one.name), newest.get(one.simulated)) for one in found]
    return render(request, "reports/reproductions.html", {"reproductions": rows})


def _newest(plans: list[str]) -> dict[str, Repeated]:
    """Return the newest finished run of each plan, by its name; samples count only if there is no other."""
    real = Case(When(testbed__sample="", then=Value(0)), default=Value(1))
    done = Run.objects.filter(plan__name__in=plans, state=RunState.DONE).select_related("plan", "testbed")
    runs = done.order_by("plan__name", real, "-pk").distinct("plan__name").prefetch_related("variants")
    compared = ((run, beside(run)) for run in runs)
    return {run.plan.name: Repeated(run, published) for run, published in compared if published}


def _by_effect(repeated: Repeated | None) -> dict[Effect, Row]:
    return {row.effect: row for row in repeated.published.rows} if repeated else {}
