# SPDX-License-Identifier: BSD-2-Clause
"""Objects that runs refer to: plans, tests and testbeds."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any

from django.http import HttpRequest
from django.urls import reverse
from ninja import Query, Router
from pydantic import BaseModel, Field

from perfweb.accounts.permissions import Action
from perfweb.api.identity import actor_of
from perfweb.api.operations import SAMPLE, Name, Number, Page, Text, Window, change, chosen, cut, read
from perfweb.api.problems import RefusedError
from perfweb.api.runs import PlanName, plan_name
from perfweb.figures.testbeds import history
from perfweb.lab.models import Outage, OutageKind, Role, Testbed
from perfweb.lab.origins import Origin
from perfweb.lab.outages import OutageError
from perfweb.runs import control
from perfweb.runs.catalogue import TESTS
from perfweb.runs.models import Plan
from perfweb.runs.services import RunError
from perfweb.runs.testbeds import Health, health
from perfweb.verdicts import names
from perfweb.verdicts.tags import tag_of_database

router = Router(tags=["catalogue"])

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class PlanDetail(PlanName):
    """A plan with its text."""

    created: datetime
    text: str = Field(description="the YAML as submitted")


class PlanPage(Page[PlanName]):
    """Plans, newest first."""


class TestRow(BaseModel):
    """A test that can be run."""

    name: str
    title: str
    topic: str = Field(description="the group that it is shown with")
    tool: str
    metric: str = Field(description="the metric that comparisons are about")
    topology: str
    family: str
    origin: Origin = Field(description="how its results come about")
    simulated: bool = Field(description="whether origin is simulated")
    page: str = Field(description="where people read it over time")


class TestList(BaseModel):
    """All tests, those that belong together in a row."""

    items: list[TestRow]


class Machine(BaseModel):
    """A host of a testbed."""

    role: Role
    name: str


class TestNoise(BaseModel):
    """The scatter of a test's samples within a variant, as relative standard deviation in percent."""

    test: str
    median: float
    greatest: float
    runs: int


class OutageOut(BaseModel):
    """A period in which a testbed takes no runs."""

    kind: OutageKind
    why: str
    by: str
    since: datetime


class HealthCheckOut(BaseModel):
    """The result of the last health check of a testbed's hosts, which precedes each run."""

    at: datetime
    holder: str = Field(description="for which run")
    problems: list[str] = Field(description="faults; empty if all hosts are fit")
    facts: dict[str, Any] = Field(description="by host: free megabytes by directory, load of the last minute")


class TestbedRow(BaseModel):
    """A testbed and its state."""

    name: str
    origin: Origin = Field(description="how its results come about")
    simulated: bool = Field(description="whether origin is simulated")
    sample: str = Field(description=SAMPLE)
    good: bool = Field(description="false if it needs attention")
    words: str = Field(description="its health in words")
    holder: str | None = Field(description="the holder of its lease; null if it is free")
    outages: list[OutageOut] = Field(description="why it takes no runs; empty when it is in service")
    checked: HealthCheckOut | None = Field(description="null before its first run")
    hosts: list[Machine]
    newest_runs: list[int] = Field(description="numbers of the newest finished runs")
    url: str
    page: str = Field(description="where people read it")


class TestbedDetail(TestbedRow):
    """A testbed with its noise."""

    noise: list[TestNoise] = Field(description="in its newest runs, by test")


class TestbedPage(Page[TestbedRow]):
    """Testbeds by name."""


class PlanFilters(BaseModel):
    """Filters of plans."""

    name: Name | None = Field(None, description="of this name; each text that a name had is a plan")
    cursor: Number | None = Field(None, description="where the page begins; take it from `next`")


class TestbedFilters(BaseModel):
    """The page of the list of testbeds."""

    cursor: Name | None = Field(None, description="where the page begins; take it from `next`")


@read(router, "plans", PlanPage, tag=tag_of_database)
def list_plans(request: HttpRequest, wanted: Query[PlanFilters], window: Query[Window]) -> PlanPage:
    """List plans, newest first."""
    rows = Plan.objects.filter(**chosen(name=wanted.name, pk__lt=wanted.cursor)).order_by("-pk").defer("text")
    plans, following = cut(request, list(rows[: window.limit + 1]), window.limit, lambda plan: plan.pk)
    return PlanPage(items=[plan_name(plan) for plan in plans], next=following)


@read(router, "plans/{sha256}", PlanDetail, may_lack=True, tag=tag_of_database)
def get_plan(request: HttpRequest, sha256: Digest) -> PlanDetail:  # noqa: ARG001
    """Show one plan with its text."""
    plan = Plan.objects.filter(sha256=sha256).first()
    if plan is None:
        raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no plan with the SHA-256 {sha256}")
    return PlanDetail(**plan_name(plan).model_dump(), created=plan.created, text=plan.text)


@read(router, "tests", TestList)
def list_tests(request: HttpRequest) -> TestList:  # noqa: ARG001
    """List the tests that plans may name."""
    items = [
        TestRow(
            name=name,
            title=test.title,
            topic=names.topic(name),
            tool=test.measure.tool,
            metric=test.measure.metric,
            topology=test.topology,
            family=test.family,
            origin=test.measure.origin,
            simulated=test.measure.origin == Origin.SIMULATED,
            page=reverse("reports:test", args=[name]),
        )
        for name, test in TESTS.items()
    ]
    return TestList(items=items)


@read(router, "testbeds", TestbedPage)
def list_testbeds(request: HttpRequest, wanted: Query[TestbedFilters], window: Query[Window]) -> TestbedPage:
    """List testbeds by name."""
    rows = Testbed.objects.filter(**chosen(name__gt=wanted.cursor)).order_by("name").prefetch_related("hosts")
    shown, following = cut(request, list(rows[: window.limit + 1]), window.limit, lambda testbed: testbed.name)
    return TestbedPage(items=[_row(found) for found in health(shown)], next=following)


@read(router, "testbeds/{name}", TestbedDetail, may_lack=True)
def get_testbed(request: HttpRequest, name: Name) -> TestbedDetail:  # noqa: ARG001
    """Return one testbed."""
    (state,) = health([_find(name)])
    heard = [
        TestNoise(test=row.test, median=row.median, greatest=row.max, runs=row.runs)
        for row in history(state.testbed).noise
    ]
    return TestbedDetail(**_row(state).model_dump(), noise=heard)


def _find(name: str) -> Testbed:
    found = Testbed.objects.filter(name=name).prefetch_related("hosts").first()
    if found is None:
        known = ", ".join(Testbed.objects.values_list("name", flat=True)[:50]) or "none yet"
        raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no testbed “{name}”; registered: {known}")
    return found


class Service(BaseModel):
    """The new state of a testbed."""

    name: str
    outages: list[OutageOut] = Field(description="those that have begun or ended")


class Why(BaseModel):
    """Why a testbed goes out of service."""

    why: Text


@change(router, "testbeds/{name}/maintain", Service, Action.MAINTAIN_TESTBED)
def maintain_testbed(request: HttpRequest, name: Name, wanted: Why) -> Service:
    """Take a testbed out of service. A run that holds it continues to its end."""
    _find(name)
    try:
        begun = control.maintain(name, wanted.why, actor_of(request))
    except (RunError, OutageError) as error:
        raise RefusedError(HTTPStatus.CONFLICT, str(error)) from None
    return Service(name=name, outages=[_outage(begun)])


@change(router, "testbeds/{name}/back", Service, Action.MAINTAIN_TESTBED)
def put_testbed_back(request: HttpRequest, name: Name) -> Service:
    """Put a testbed back into service, from maintenance or quarantine."""
    _find(name)
    try:
        ended = control.put_back(name, actor_of(request))
    except (RunError, OutageError) as error:
        raise RefusedError(HTTPStatus.CONFLICT, str(error)) from None
    return Service(name=name, outages=[_outage(outage) for outage in ended])


def _outage(outage: Outage) -> OutageOut:
    return OutageOut(kind=OutageKind(outage.kind), why=outage.why, by=outage.by, since=outage.began)


def _row(state: Health) -> TestbedRow:
    name = state.testbed.name
    return TestbedRow(
        name=name,
        origin=Origin(state.testbed.origin),
        simulated=state.testbed.origin == Origin.SIMULATED,
        sample=state.testbed.sample,
        good=state.good,
        words=state.words,
        holder=state.lease.holder if state.lease else None,
        outages=[_outage(outage) for outage in state.outages],
        checked=HealthCheckOut.model_validate(state.check, from_attributes=True) if state.check else None,
        hosts=[Machine(role=Role(host.role), name=host.name) for host in state.testbed.hosts.all()],
        newest_runs=[run.pk for run in state.runs],
        url=reverse("api-v1:get_testbed", args=[name]),
        page=reverse("reports:testbed", args=[name]),
    )
