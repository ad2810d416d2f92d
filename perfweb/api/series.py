# SPDX-License-Identifier: BSD-2-Clause
"""A test over commits or runs: the points of a timeline, and the summaries that they are made from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from ninja import Query, Router
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from perfweb.api.operations import Page, Text, Window, chosen, cut, read
from perfweb.api.problems import BadInput, bad_input
from perfweb.figures.levels import Shift, shifts
from perfweb.figures.timelines import MOST_SERIES, RUN, Line, RangeError, read_timeline, read_window
from perfweb.runs.models import Direction, Summary
from perfweb.stats.comparison import Verdict
from perfweb.verdicts.tags import tag_of_database

router = Router(tags=["series"])

USUAL_POINTS, MOST_POINTS = 200, 2000
Bound = Annotated[str, Field(max_length=40, pattern=r"^[^\u0000]*$")]
Place = Annotated[str, Field(pattern=r"^[0-9]{1,18}:[0-9]{1,18}$")]
"""Number of a run, and key of a summary."""


class Point(TypedDict):
    """A commit or a run."""

    # Not a model class, because a series has thousands of points.
    at: Annotated[datetime | None, Field(description="time of the commit; null where the series goes by run")]
    run: Annotated[int, Field(description="the newest run of the commit, or the run")]
    revision: Annotated[str, Field(description="`git describe` of the source that was built; empty if unknown")]
    mean: Annotated[float, Field(description="of the runs of the commit, or of the run")]
    environment: Annotated[str, Field(description="digest of the facts about the hosts; empty where there are none")]


class Series(BaseModel):
    """A line of a timeline: the same variant of the same plan on the same testbed."""

    name: str = Field(description="testbed/plan/variant")
    points: list[Point] = Field(description="in the order of the axis")


class Fact(BaseModel):
    """A property of a host that changed."""

    name: str
    before: str
    after: str


class HostChange(BaseModel):
    """Hosts that changed between two runs."""

    testbed: str
    run: int = Field(description="the first run that found them so")
    facts: list[Fact]


class Spot(BaseModel):
    """A point of a series."""

    revision: str
    run: int


class LevelChange(BaseModel):
    """A change point of a series. With 95 % confidence it is after `since`, and at or before `until`; its size is
    between `low` and `high`.
    """

    series: str
    verdict: Verdict
    since: Spot
    until: Spot
    before: float = Field(description="the level before, in the unit of the test")
    after: float
    percent: float | None = Field(
        description="the change in percent of the level before; null where that is not above 0"
    )
    low: float | None
    high: float | None
    cautions: list[str] = Field(description="what else changed there, in words: other machine, kernel or hosts")


class TimelineOut(BaseModel):
    """The newest part of a test's series. Without measurements it has no series, and no unit."""

    test: str
    by: Literal["commit", "run"]
    unit: str
    direction: Direction | None = Field(description="the better direction")
    series: list[Series]
    left_out: list[str] = Field(description=f"names of omitted series: at most {MOST_SERIES} are returned at once")
    changes: list[HostChange]
    levels: list[LevelChange] = Field(description="changes of level, in the order of the axis")
    page: str = Field(description="where people read it")


class SummaryRow(BaseModel):
    """A summary of the counted samples of one test on one variant of a run."""

    run: int
    variant: str
    test: str
    series: str = Field(description="testbed/plan/variant")
    at: datetime = Field(description="time of the commit that was built, or of the run where there is none")
    revision: str
    environment: str = Field(description="digest of the facts about the hosts")
    unit: str
    direction: Direction
    n: int
    mean: float
    deviation: float | None
    minimum: float
    maximum: float


class SummaryPage(Page[SummaryRow]):
    """Summaries, newest run first."""


class Range(BaseModel):
    """Filters of a test's points."""

    test: Text = Field(description="name of the test", examples=["tcp.rr/host-host/ipv4"])
    by: Literal["commit", "run"] = Field("commit", description="meaning of the points")
    first: Bound = Field("", alias="from", description="a date or time, or the number of a run")
    last: Bound = Field("", alias="to", description="a date or time, or the number of a run")
    newest: int = Field(USUAL_POINTS, ge=1, le=MOST_POINTS, description=f"points of the axis, {MOST_POINTS} at most")
    series: list[Text] = Field([], description="only these series, as testbed/plan/variant")


class SummaryFilters(BaseModel):
    """Which summaries."""

    test: Text = Field(description="name of the test", examples=["tcp.rr/host-host/ipv4"])
    series: list[Text] = Field([], description="only of these series, as testbed/plan/variant")
    cursor: Place | None = Field(None, description="where the page begins; take it from `next`")


@read(router, "series", TimelineOut, tag=tag_of_database)
def get_series(request: HttpRequest, wanted: Query[Range]) -> TimelineOut:  # noqa: ARG001
    """Show a test over commits or runs.

    The newest points are returned; page back with `to`. `summaries` has all of them, in parts.
    """
    try:
        window = read_window(wanted.by, wanted.first, wanted.last, str(wanted.newest))
    except RangeError as error:
        raise bad_input(BadInput(parameter="from, to", reason=str(error))) from None
    found = read_timeline(wanted.test, window, wanted.series)
    lines = found.series if found else {}
    return TimelineOut(
        test=wanted.test,
        by=wanted.by,
        unit=found.unit if found else "",
        direction=Direction(found.direction) if found else None,
        series=[Series(name=name, points=_points(line, wanted.by)) for name, line in lines.items()],
        left_out=found.left_out if found else [],
        changes=[
            HostChange(
                testbed=change.testbed,
                run=change.run,
                facts=[Fact(name=fact.name, before=fact.values[0], after=fact.values[1]) for fact in change.facts],
            )
            for change in (found.changes if found else [])
        ],
        levels=[_level(shift) for shift in shifts(found)] if found else [],
        page=f"{reverse('reports:test', args=[wanted.test])}?{urlencode({'by': wanted.by})}",
    )


@read(router, "summaries", SummaryPage, tag=tag_of_database)
def list_summaries(request: HttpRequest, wanted: Query[SummaryFilters], window: Query[Window]) -> SummaryPage:
    """List the summaries of a test, newest run first."""
    rows = Summary.objects.filter(_before(wanted.cursor), test=wanted.test, **chosen(series__in=wanted.series))
    ordered = rows.select_related("variant").order_by("-run_id", "-pk")[: window.limit + 1]
    shown, following = cut(request, list(ordered), window.limit, lambda row: f"{row.run_id}:{row.pk}")
    items = [
        SummaryRow(
            run=row.run_id,
            variant=row.variant.name,
            test=row.test,
            series=row.series,
            at=row.at,
            revision=row.revision,
            environment=row.environment,
            unit=row.unit,
            direction=Direction(row.direction),
            n=row.n,
            mean=row.mean,
            deviation=row.deviation,
            minimum=row.minimum,
            maximum=row.maximum,
        )
        for row in shown
    ]
    return SummaryPage(items=items, next=following)


def _before(cursor: str | None) -> Q:
    if cursor is None:
        return Q()
    run, key = map(int, cursor.split(":"))
    # The first condition follows from the second, but only the first can use the index of test and run.
    return Q(run__lte=run) & (Q(run__lt=run) | Q(pk__lt=key))


def _level(shift: Shift) -> LevelChange:
    size = shift.found.change
    return LevelChange(
        series=shift.series,
        verdict=shift.verdict,
        since=Spot(revision=shift.since.revision, run=shift.since.run),
        until=Spot(revision=shift.until.revision, run=shift.until.run),
        before=shift.found.before,
        after=shift.found.after,
        percent=size.percent if size else None,
        low=size.low if size else None,
        high=size.high if size else None,
        cautions=list(shift.cautions),
    )


def _points(line: Line, by: str) -> list[Point]:
    times = [None if by == RUN else datetime.fromtimestamp(x / 1000, UTC) for x in line.x.tolist()]
    columns = (times, line.run.tolist(), line.revision, line.mean.tolist(), line.environment)
    return [
        {"at": at, "run": run, "revision": revision, "mean": mean, "environment": environment}
        for at, run, revision, mean, environment in zip(*columns, strict=True)
    ]
