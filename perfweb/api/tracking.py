# SPDX-License-Identifier: BSD-2-Clause
"""Tracked branches, changes between two of their commits, and alerts."""

from __future__ import annotations

from datetime import date, datetime
from http import HTTPStatus
from typing import Annotated, Literal

from django.http import HttpRequest
from django.urls import reverse
from ninja import Query, Router
from pydantic import BaseModel, ConfigDict, Field

from perfweb.accounts.permissions import Action
from perfweb.api.identity import actor_of
from perfweb.api.operations import SAMPLE, Name, Number, Page, Window, change, chosen, cut, finite, read
from perfweb.api.problems import BadInput, RefusedError, bad_input
from perfweb.lab.origins import Origin
from perfweb.stats.comparison import Verdict
from perfweb.tracking import periods, services
from perfweb.tracking.models import Alert, AlertState, Movement, Rhythm, TrackedBranch, TrackedCommit
from perfweb.tracking.standings import Standing
from perfweb.transitions import IllegalTransitionError

router = Router(tags=["tracking"])

Judgement = Literal["acknowledged", "fixed", "not-a-bug", "infrastructure"]
CommitWord = Annotated[str, Field(pattern=r"^([0-9]{1,5}|[0-9a-f]{6,40})$")]


class CommitOut(BaseModel):
    """A commit of a tracked branch."""

    sha: str
    position: int | None = Field(description="its place on the branch, from 1; null once the branch was rewritten")
    subject: str
    author: str
    committed: datetime


class BranchRow(BaseModel):
    """A branch whose commits are measured."""

    name: str
    repository: str | None = Field(description="null for the service's own")
    branch: str
    testbed: str
    origin: Origin = Field(description="how its results come about")
    simulated: bool
    sample: str = Field(description=SAMPLE)
    rhythm: Rhythm
    every: int = Field(description="N of the rhythm “every”")
    since: str = Field(description="the first commit that is tracked")
    threshold: float = Field(description="percent; smaller changes raise no alert")
    active: bool
    problem: str = Field(description="reason why it cannot be tracked; empty if none")
    page: str = Field(description="where people read it")


class BranchList(BaseModel):
    """All tracked branches by name."""

    items: list[BranchRow]


class MovementOut(BaseModel):
    """A test that changed."""

    test: str
    variant: str
    better: bool
    suspected: float = Field(description="percent, from the levels of the series")
    percent: float | None = Field(description="as measured in turn on both sides; null until that was done")
    low: float | None
    high: float | None
    confirmed: bool | None


class AlertRow(BaseModel):
    """Changes between two commits that belong together."""

    number: int
    branch: str
    origin: Origin = Field(description="how its results come about")
    simulated: bool
    sample: str = Field(description=SAMPLE)
    state: AlertState
    since: CommitOut = Field(description="the last one before the change")
    until: CommitOut = Field(description="the first one certainly after it")
    commit: CommitOut | None = Field(description="result of the bisection")
    probability: float | None = Field(description="that it is this commit")
    conclusion: str = Field(description="result of confirmation and bisection; empty before")
    owner: str | None
    due: date | None
    created: datetime
    movements: list[MovementOut]
    url: str
    page: str = Field(description="where people read it")


class StepOut(BaseModel):
    """A step in the life of an alert, or a comment."""

    at: datetime
    state: str = Field(description="the new one; empty where it stays")
    who: str
    text: str


class CheckOut(BaseModel):
    """A run that measured a commit in turn with the last one before the change."""

    commit: CommitOut
    run: int


class AlertDetail(AlertRow):
    """An alert with its history."""

    steps: list[StepOut]
    checks: list[CheckOut]


class AlertPage(Page[AlertRow]):
    """Alerts, newest first."""


class StandingOut(BaseModel):
    """The total change of a test."""

    test: str
    variant: str
    verdict: Verdict = Field(description="`not judged` where the hosts changed and no change is known")
    words: str = Field(description="the verdict, with the reason where there is none")
    cautions: list[str] = Field(description="what else changed meanwhile, in words")
    percent: float | None = Field(description="null if not judged")
    low: float | None = Field(description="lower bound of the 95 % confidence interval")
    high: float | None
    better: bool | None
    changes: int = Field(description="confirmed alerts and change points that make it up")


class PeriodOut(BaseModel):
    """The changes of a branch between two commits."""

    branch: str
    origin: Origin = Field(description="how its results come about")
    simulated: bool
    sample: str = Field(description=SAMPLE)
    first: CommitOut
    last: CommitOut
    commits: int = Field(description="that came after the first, up to the last")
    measured: int
    moved: list[StandingOut] = Field(description="the worst first")
    alerts: list[AlertRow]


class AlertFilters(BaseModel):
    """Filters of alerts."""

    branch: Name | None = Field(None, description="only of this tracked branch")
    state: AlertState | None = Field(None, description="only in this state")
    cursor: Number | None = Field(None, description="where the page begins; take it from `next`")


class AlertUpdateIn(BaseModel):
    """An update of an alert."""

    model_config = ConfigDict(extra="forbid")

    state: Judgement | None = Field(None, description="outcome of a confirmed change")
    owner: str | None = Field(None, max_length=150, description="name of an account; empty for none")
    due: date | None = Field(None, description="until when the owner looks after it")
    text: str = Field("", max_length=5000, description="a comment")


class Ends(BaseModel):
    """Two commits: numbers on the branch, or six or more letters of a hash."""

    first: CommitWord | None = Field(None, description="without it the first that is tracked")
    last: CommitWord | None = Field(None, description="without it the newest")


@read(router, "tracked-branches", BranchList)
def list_tracked_branches(request: HttpRequest) -> BranchList:  # noqa: ARG001
    """List the branches whose commits are measured."""
    return BranchList(items=[_branch(found) for found in TrackedBranch.objects.select_related("mirror", "testbed")])


@read(router, "tracked-branches/{name}", BranchRow, may_lack=True)
def get_tracked_branch(request: HttpRequest, name: Name) -> BranchRow:  # noqa: ARG001
    """Return one tracked branch."""
    return _branch(_find(name))


@read(router, "tracked-branches/{name}/period", PeriodOut, may_lack=True)
def get_period(request: HttpRequest, name: Name, wanted: Query[Ends]) -> PeriodOut:  # noqa: ARG001
    """Summarise the changes between two commits, for example from one release to the next."""
    branch = _find(name)
    first = _end(branch, "first", wanted.first, "position")
    last = _end(branch, "last", wanted.last, "-position")
    try:
        found = periods.between(branch, first, last)
    except periods.PeriodError as error:
        raise bad_input(BadInput(parameter="first", reason=str(error))) from None
    return PeriodOut(
        branch=branch.name,
        origin=Origin(branch.testbed.origin),
        simulated=branch.testbed.origin == Origin.SIMULATED,
        sample=branch.testbed.sample,
        first=_commit(first),
        last=_commit(last),
        commits=found.commits,
        measured=found.measured,
        moved=[_standing(row) for row in found.standings],
        alerts=[_alert(alert) for alert in found.alerts],
    )


def _standing(row: Standing) -> StandingOut:
    change = row.change
    return StandingOut(
        test=row.test,
        variant=row.variant,
        verdict=row.verdict,
        words=row.words,
        cautions=row.cautions,
        percent=change.percent if change else None,
        low=change.low if change else None,
        high=change.high if change else None,
        better=row.better if change else None,
        changes=row.changes,
    )


@read(router, "alerts", AlertPage)
def list_alerts(request: HttpRequest, wanted: Query[AlertFilters], window: Query[Window]) -> AlertPage:
    """List alerts, newest first, with suspicions that are not confirmed yet or were not seen again."""
    filters = chosen(branch__name=wanted.branch, state=wanted.state, number__lt=wanted.cursor)
    rows = list(Alert.objects.to_show().filter(**filters)[: window.limit + 1])
    shown, following = cut(request, rows, window.limit, lambda alert: alert.number)
    return AlertPage(items=[_alert(alert) for alert in shown], next=following)


@read(router, "alerts/{number}", AlertDetail, may_lack=True)
def get_alert(request: HttpRequest, number: Number) -> AlertDetail:  # noqa: ARG001
    """Show an alert with its history."""
    return _detail(_find_alert(number))


@change(router, "alerts/{number}/say", AlertDetail, Action.JUDGE_ALERT)
def change_alert(request: HttpRequest, number: Number, changed: AlertUpdateIn) -> AlertDetail:
    """Set the outcome, or the owner until a due date, of a confirmed alert, or comment on it.

    Missing values stay unchanged; an owner without a due date has none.
    """
    known = _find_alert(number)
    owner = changed.owner
    if owner is None and changed.due is not None:
        owner = known.owner.get_username() if known.owner else ""
    update = services.AlertUpdate(state=changed.state or "", owner=owner, due=changed.due, text=changed.text)
    try:
        services.update_alert(actor_of(request), number, update)
    except IllegalTransitionError as error:
        raise RefusedError(HTTPStatus.CONFLICT, str(error)) from None
    except services.PROBLEMS as error:
        raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
    return _detail(_find_alert(number))


def _find(name: str) -> TrackedBranch:
    try:
        return services.find(name)
    except services.TrackingError as error:
        raise RefusedError(HTTPStatus.NOT_FOUND, str(error)) from None


def _find_alert(number: int) -> Alert:
    found = Alert.objects.to_show().filter(number=number).first()
    if found is None:
        raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no alert {number}")
    return found


def _detail(alert: Alert) -> AlertDetail:
    steps = [StepOut(at=step.at, state=step.to_state, who=step.who, text=step.text) for step in alert.steps.all()]
    checks = [
        CheckOut(commit=_commit(check.commit), run=check.run_id) for check in alert.checks.select_related("commit")
    ]
    return AlertDetail(**_alert(alert).model_dump(), steps=steps, checks=checks)


def _end(branch: TrackedBranch, parameter: str, word: str | None, otherwise: str) -> TrackedCommit:
    """Return the commit that a parameter names."""
    try:
        return periods.find(branch, word or "", otherwise)
    except periods.PeriodError as error:
        raise bad_input(BadInput(parameter=parameter, reason=str(error))) from None


def _commit(commit: TrackedCommit) -> CommitOut:
    return CommitOut.model_validate(commit, from_attributes=True)


def _branch(branch: TrackedBranch) -> BranchRow:
    return BranchRow(
        name=branch.name,
        repository=branch.mirror.name if branch.mirror else None,
        branch=branch.branch,
        testbed=branch.testbed.name,
        origin=Origin(branch.testbed.origin),
        simulated=branch.testbed.origin == Origin.SIMULATED,
        sample=branch.testbed.sample,
        rhythm=Rhythm(branch.rhythm),
        every=branch.every,
        since=branch.since,
        threshold=branch.threshold,
        active=branch.active,
        problem=branch.problem,
        page=reverse("tracking:branch", args=[branch.name]),
    )


def _alert(alert: Alert) -> AlertRow:
    return AlertRow(
        number=alert.number,
        branch=alert.branch.name,
        origin=Origin(alert.branch.testbed.origin),
        simulated=alert.branch.testbed.origin == Origin.SIMULATED,
        sample=alert.branch.testbed.sample,
        state=AlertState(alert.state),
        since=_commit(alert.since),
        until=_commit(alert.until),
        commit=_commit(alert.culprit) if alert.culprit else None,
        probability=alert.probability,
        conclusion=alert.conclusion,
        owner=alert.owner.get_username() if alert.owner else None,
        due=alert.due,
        created=alert.created,
        movements=[_movement(row) for row in alert.movements.all()],
        url=reverse("api-v1:get_alert", args=[alert.number]),
        page=reverse("tracking:alert", args=[alert.number]),
    )


def _movement(row: Movement) -> MovementOut:
    return MovementOut(
        test=row.test,
        variant=row.variant,
        better=row.better,
        suspected=row.suspected,
        percent=finite(row.percent),
        low=finite(row.low),
        high=finite(row.high),
        confirmed=row.confirmed,
    )
