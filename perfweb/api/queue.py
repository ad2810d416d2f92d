# SPDX-License-Identifier: BSD-2-Clause
"""The queue of runs, with estimated starts."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from django.urls import reverse
from ninja import Query, Router
from pydantic import BaseModel, Field

from perfweb.api.operations import Name, read
from perfweb.lab.models import Testbed
from perfweb.runs import queue

router = Router(tags=["runs"])


class Waiting(BaseModel):
    """A queued run."""

    number: int
    testbed: str
    plan: str = Field(description="its name")
    requested_by: str
    priority: str = Field(description="low, normal or high")
    created: datetime
    seconds_to_start: int | None = Field(
        description="reckoned from earlier runs of the same plans: 0 is at once, null where it is unknown"
    )
    url: str
    page: str = Field(description="where people read it")


class Queue(BaseModel):
    """The queue, by testbed and in order."""

    items: list[Waiting]


class QueueFilters(BaseModel):
    """The part of the queue."""

    testbed: Name | None = Field(None, description="only runs that wait for this testbed")


@read(router, "queue", Queue)
def get_queue(request: HttpRequest, wanted: Query[QueueFilters]) -> Queue:  # noqa: ARG001
    """List queued runs in order.

    The order is priority, then the submitter with the shortest testbed time in the last day, then age.
    """
    testbeds = Testbed.objects.filter(name=wanted.testbed) if wanted.testbed else [None]
    places = [place for testbed in testbeds for place in queue.forecast(testbed)]
    return Queue(items=[_waiting(place) for place in places])


def _waiting(place: queue.Place) -> Waiting:
    run = place.run
    return Waiting(
        number=run.pk,
        testbed=run.testbed.name,
        plan=run.plan.name,
        requested_by=run.requested_by,
        priority=run.get_priority_display(),
        created=run.created,
        seconds_to_start=None if place.seconds is None else round(place.seconds),
        url=reverse("api-v1:get_run", args=[run.pk]),
        page=reverse("reports:run", args=[run.pk]),
    )
