# SPDX-License-Identifier: BSD-2-Clause
"""Runs: the list with its filters, one run, and its progress."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router
from pydantic import BaseModel, Field

from perfweb.accounts.permissions import Action
from perfweb.api.identity import actor_of
from perfweb.api.operations import SAMPLE, Moment, Name, Number, Page, Text, Window, change, chosen, cut, dated, read
from perfweb.api.problems import RefusedError
from perfweb.lab.origins import Origin
from perfweb.rawdata.tables import FORMATS
from perfweb.runs import control, progress
from perfweb.runs.models import Import, Measurement, MeasurementState, Plan, Run, RunState, Variant
from perfweb.runs.services import RunError
from perfweb.verdicts.failures import Kind
from perfweb.verdicts.outcome import outcome
from perfweb.verdicts.run_verdicts import verdicts
from perfweb.verdicts.tags import tag_of_database, tag_of_run

router = Router(tags=["runs"])


class PlanName(BaseModel):
    """The plan of a run."""

    name: str
    title: str
    sha256: str = Field(description="of its text, which identifies a plan, because a name can have several texts")
    url: str


class VariantOfRun(BaseModel):
    """A variant that a run compares."""

    name: str
    baseline: bool = Field(description="whether the others are compared with it")
    target: str
    build_options: list[str]
    tunables: dict[str, Any]
    revision: str | None = Field(description="`git describe` of the sources; null where that is not known")
    build: str | None = Field(description="key of the build, a hash of sources and options")


class PairVerdict(BaseModel):
    """The results of a run for one of its variants."""

    base: str
    variant: str
    words: str = Field(description="number of tests with each verdict", examples=["5 faster, 1 equivalent"])


class Imported(BaseModel):
    """The origin of imported results."""

    format: str = Field(description="format of the import")
    origin: str = Field(description="origin and author")
    sha256: str = Field(description="of the file, or of the sums and names of several")
    imported_by: str
    at: datetime


class RunRow(BaseModel):
    """A run in a list."""

    number: int
    state: RunState
    over: bool = Field(description="whether nothing works on it any more")
    reason: str = Field(description="why it is in this state, where that needs saying")
    plan: PlanName
    testbed: str
    origin: Origin = Field(description="how its results come about")
    simulated: bool = Field(description="whether origin is simulated")
    sample: str = Field(description=SAMPLE)
    variants: list[VariantOfRun]
    imported: Imported | None = Field(description="null for results that were measured here")
    requested_by: str
    seed: int = Field(description="of the random order of its boots")
    created: datetime
    started: datetime | None
    ended: datetime | None
    verdicts: list[PairVerdict] | None = Field(
        description="empty for a run that is not done, null in a list without verdicts=true"
    )
    url: str
    page: str = Field(description="where people read it")


class HostOfRun(BaseModel):
    """The facts about a host when the run used it."""

    role: str
    name: str
    facts: dict[str, Any]


class Transition(BaseModel):
    """A step in the life of a run."""

    at: datetime
    from_state: str = Field(description="empty for the creation of the run")
    to_state: RunState
    reason: str


class File(BaseModel):
    """A file to download."""

    name: str
    url: str


class Failure(BaseModel):
    """A variant that fails."""

    variant: str
    kind: Kind = Field(description="what it fails to do")
    line: str = Field(description="the decisive line of the compiler or of the console")
    details: str = Field(description="the lines of source that the compiler shows; may be empty")


class RunDetail(RunRow):
    """A run with all details except its results, which have lists of their own."""

    hosts: list[HostOfRun]
    history: list[Transition]
    boots: int = Field(description="number so far")
    measurements: dict[MeasurementState, int] = Field(description="number so far, by state")
    files: list[File] = Field(description="raw data")
    events: str = Field(description="address of the live progress, a stream of server-sent events")
    failures: list[Failure] = Field(description="variants that do not build or do not run, when it is over")
    warnings: list[str] = Field(description="of the compiler, which only kernels with a patch have")


class RunPage(Page[RunRow]):
    """Runs, newest first."""


class Booting(BaseModel):
    """The boot that is running."""

    position: int = Field(description="place in the order of the run, from 0")
    boots: int = Field(description="number in the run")
    variant: str
    topology: str
    server: str


class Measuring(BaseModel):
    """The measurement that is running."""

    test: str
    variant: str


class Progress(BaseModel):
    """The progress of a run. Everything except the state is null if it is unknown or over."""

    number: int
    state: RunState
    over: bool
    reason: str
    fraction: float | None = Field(description="of the work that is done, from 0 to 1")
    seconds_left: float | None
    boot: Booting | None
    measuring: Measuring | None
    events: str = Field(description="address of the live progress, a stream of server-sent events")


class RunFilters(BaseModel):
    """Filters of runs; all conditions must hold."""

    state: list[RunState] = Field([], description="any of these states")
    plan: Name | None = Field(None, description="name of the plan")
    test: Text | None = Field(None, description="runs that measured this test")
    variant: Name | None = Field(None, description="runs that have a variant of this name")
    testbed: Name | None = Field(None, description="name of the testbed")
    commit: Text | None = Field(None, description="runs that built this revision, as `git describe` names it")
    since: Moment | None = Field(None, description="runs created then or later: a date or a time")
    until: Moment | None = Field(None, description="runs created earlier")
    verdicts: bool = Field(False, description="include the verdicts of each run")
    cursor: Number | None = Field(None, description="where the page begins; take it from `next`")


@read(router, "runs", RunPage, tag=tag_of_database)
def list_runs(request: HttpRequest, wanted: Query[RunFilters], window: Query[Window]) -> RunPage:
    """List runs, newest first."""
    rows = _filtered(wanted).select_related("plan", "testbed", "imported").prefetch_related("variants__build")
    runs, following = cut(request, list(rows[: window.limit + 1]), window.limit, lambda run: run.pk)
    judged = _verdicts_of(runs) if wanted.verdicts else {}
    return RunPage(items=[RunRow(**_row(run, judged.get(run.pk))) for run in runs], next=following)


@read(router, "runs/{number}", RunDetail, may_lack=True, tag=tag_of_run)
def get_run(request: HttpRequest, response: HttpResponse, number: Number) -> RunDetail:  # noqa: ARG001
    """Return one run."""
    run = find_run(number)
    dated(response, run)
    found = outcome(run, pairs=())
    counts = Measurement.objects.filter(boot__run=run).order_by().values_list("state").annotate(Count("pk"))
    return RunDetail(
        **_row(run, _verdicts_of([run])[run.pk]),
        hosts=[HostOfRun(role=host.role, name=host.name, facts=host.facts) for host in run.host_facts.all()],
        history=[
            Transition(at=step.at, from_state=step.from_state, to_state=RunState(step.to_state), reason=step.reason)
            for step in run.transitions.all()
        ],
        boots=run.boots.count(),
        measurements={MeasurementState(state): count for state, count in counts},
        files=[File(name=name, url=f"{reverse('reports:run', args=[number])}{name}") for name in FILES],
        events=_events(run),
        failures=[
            Failure(variant=one.variant, kind=one.kind, line=one.line, details=one.details) for one in found.failures
        ],
        warnings=list(map(str, found.warnings)),
    )


@read(router, "runs/{number}/progress", Progress, may_lack=True)
def get_progress(request: HttpRequest, number: Number) -> Progress:  # noqa: ARG001
    """Return the progress of a run.

    Poll it at most once per second, or follow the events.
    """
    run = find_run(number)
    latest: dict[str, dict[str, Any]] = {} if run.is_over else progress.latest(number)
    eta = latest.get("eta", {})
    return Progress(
        number=number,
        state=RunState(run.state),
        over=run.is_over,
        reason=run.reason,
        fraction=eta.get("fraction"),
        seconds_left=eta.get("seconds"),
        boot=Booting(**latest["boot"]) if "boot" in latest else None,
        measuring=Measuring(**latest["measuring"]) if "measuring" in latest else None,
        events=_events(run),
    )


class Cancelled(BaseModel):
    """A run that was cancelled, or will be soon."""

    number: int
    state: RunState
    cancel_requested: bool = Field(description="it is measuring still, and restores its testbed before it ends")


@change(router, "runs/{number}/cancel", Cancelled, Action.CANCEL_OWN)
def cancel_run(request: HttpRequest, number: Number) -> Cancelled:
    """End a run.

    One's own with the role submitter, any with the role maintainer.
    """
    find_run(number)
    try:
        run = control.cancel(number, actor_of(request))
    except RunError as error:
        raise RefusedError(HTTPStatus.CONFLICT, str(error)) from None
    return Cancelled(number=number, state=RunState(run.state), cancel_requested=run.cancel_requested)


FILES = (
    *(f"{table}.{form}" for table in ("samples", "verdicts", "interim") for form in FORMATS),
    "run.json",
    "plan.yaml",
    "raw.tar",
)
"""The files of a run's page that can be downloaded."""


def find_run(number: int) -> Run:
    """Return a run with its plan, testbed and variants. Raises RefusedError."""
    runs = Run.objects.select_related("plan", "testbed", "imported").prefetch_related("variants__build")
    if run := runs.filter(pk=number).first():
        return run
    newest = Run.objects.values_list("number", flat=True).first()
    there_is = f"the newest is {newest}" if newest else "none has been submitted yet"
    raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no run {number}; {there_is}")


def plan_name(plan: Plan) -> PlanName:
    """Return the part of a row that identifies a plan."""
    return PlanName(
        name=plan.name, title=plan.title, sha256=plan.sha256, url=reverse("api-v1:get_plan", args=[plan.sha256])
    )


def _filtered(wanted: RunFilters) -> QuerySet[Run]:
    runs = Run.objects.filter(
        **chosen(
            state__in=wanted.state,
            plan__name=wanted.plan,
            testbed__name=wanted.testbed,
            created__gte=wanted.since,
            created__lt=wanted.until,
            pk__lt=wanted.cursor,
        )
    )
    if wanted.test:
        runs = runs.filter(Exists(Measurement.objects.filter(boot__run=OuterRef("pk"), test=wanted.test)))
    if of_variant := chosen(name=wanted.variant, build__revision=wanted.commit):
        runs = runs.filter(Exists(Variant.objects.filter(run=OuterRef("pk"), **of_variant)))
    return runs


def _verdicts_of(runs: Sequence[Run]) -> dict[int, list[PairVerdict]]:
    return {
        run.pk: [PairVerdict(base=pair.a.name, variant=pair.b.name, words=pair.tally) for pair in pairs]
        for run, pairs in verdicts(runs)
    }


def _row(run: Run, judged: list[PairVerdict] | None) -> dict[str, Any]:
    return {
        "number": run.pk,
        "state": run.state,
        "over": run.is_over,
        "reason": run.reason,
        "plan": plan_name(run.plan),
        "testbed": run.testbed.name,
        "origin": run.testbed.origin,
        "simulated": run.testbed.origin == Origin.SIMULATED,
        "sample": run.testbed.sample,
        "variants": [_variant(variant) for variant in run.variants.all()],
        "imported": _imported(run.imported) if run.imported else None,
        "requested_by": run.requested_by,
        "seed": run.seed,
        "created": run.created,
        "started": run.started,
        "ended": run.ended,
        "verdicts": judged,
        "url": reverse("api-v1:get_run", args=[run.pk]),
        "page": reverse("reports:run", args=[run.pk]),
    }


def _variant(variant: Variant) -> VariantOfRun:
    return VariantOfRun(
        name=variant.name,
        baseline=variant.baseline,
        target=variant.target,
        build_options=variant.build_options,
        tunables=variant.tunables,
        revision=(variant.build.revision or None) if variant.build else None,
        build=variant.build.key if variant.build else None,
    )


def _imported(source: Import) -> Imported:
    return Imported(
        format=source.format,
        origin=source.origin,
        sha256=source.sha256,
        imported_by=source.imported_by,
        at=source.created,
    )


def _events(run: Run) -> str:
    return reverse("run-events", args=[run.pk])
