# SPDX-License-Identifier: BSD-2-Clause
"""Submissions: patches that are measured against their base."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest
from django.urls import reverse
from ninja import Query, Router
from pydantic import BaseModel, ConfigDict, Field

from perfweb.accounts.permissions import Action
from perfweb.api.identity import actor_of
from perfweb.api.operations import Name, Number, Page, Text, Window, change, chosen, cut, read
from perfweb.api.problems import RefusedError
from perfweb.inputlimits import PATCH_BYTES
from perfweb.runs.planfile import MOST_BOOTS
from perfweb.submissions import services
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.more import more
from perfweb.verdicts.tags import tag_of_database

router = Router(tags=["submissions"])

_A_LINE = r"^[^\u0000-\u001f]*[^\u0000-\u0020][^\u0000-\u001f]*$"


class NewSubmission(BaseModel):
    """A patch and how to measure it."""

    model_config = ConfigDict(extra="forbid")

    patch: str = Field(
        "", max_length=PATCH_BYTES, description="output of git format-patch --stdout or git diff; or else a ref"
    )
    ref: str = Field("", max_length=100, description="a branch, tag or commit: the patch is its changes since the base")
    repository: str = Field(
        "",
        pattern=r"^[-A-Za-z0-9_]{0,64}$",
        description="a registered repository with ref and base; the service's own unless given",
    )
    message_id: str = Field(
        "", max_length=252, description="the patch is the mbox of a thread: the series to which this mail belongs"
    )
    testbed: Name
    tests: Name = Field("tcp-quick", description="name of a matrix of tests, as the form lists them")
    tunables: dict[str, str] = Field({}, max_length=64, description="tunables of both base and patch")
    each: bool = Field(False, description="whether every stage of a series is measured")
    base: str = Field(
        "", max_length=100, description="branch, tag or commit; unless given, that of the patch's line base-commit"
    )
    title: str = Field("", max_length=services.LONGEST_TITLE, description="the subject of the patch, unless given")
    plan: str = Field(
        "", max_length=65536, description="a plan instead of tests and tunables; one with `source: patch`"
    )


class Refusal(BaseModel):
    """The reason of a rejection."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(max_length=500, pattern=_A_LINE, description="a line that its author reads")


class Rerun(BaseModel):
    """The size of a repeated measurement."""

    model_config = ConfigDict(extra="forbid")

    boots: int | None = Field(None, ge=1, le=MOST_BOOTS, description="of each variant; as the plan has it unless given")


class ChangedFile(BaseModel):
    """Lines that a patch adds and removes."""

    path: str
    added: int
    removed: int


class StageOfSubmission(BaseModel):
    """One patch of a series."""

    subject: str
    author: str
    files: list[ChangedFile]


class RunOfSubmission(BaseModel):
    """A run that measures it."""

    number: int
    state: str
    url: str


class SubmissionRow(BaseModel):
    """A submission in a list."""

    number: int
    title: str
    author: str
    state: SubmissionState
    base: str = Field(description="the commit that it is applied to")
    revision: str = Field(description="`git describe` of that")
    testbed: str
    seconds: int = Field(description="of the testbed's time, as estimated")
    created: datetime
    runs: list[RunOfSubmission]
    url: str
    page: str = Field(description="where people read it")


class SubmissionStep(BaseModel):
    """A step in the life of a submission."""

    at: datetime
    from_state: str = Field(description="empty when it came")
    to_state: SubmissionState
    who: str
    reason: str


class SubmissionDetail(SubmissionRow):
    """A submission with all details except its results, which are those of its runs."""

    reason: str = Field(description="why it is in this state, where that needs saying: the hunk that does not fit")
    stages: list[StageOfSubmission]
    plan: str
    history: list[SubmissionStep]
    patch: str = Field(description="address of the original patch")
    deciding_boots: int | None = Field(
        description="boots of each variant that would decide the open verdicts of the newest run; null if unknown"
    )


class SubmissionPage(Page[SubmissionRow]):
    """Submissions, newest first."""


class SubmissionFilters(BaseModel):
    """Filters of submissions; all conditions must hold."""

    state: list[SubmissionState] = Field([], description="any of these states")
    author: Text | None = Field(None, description="name of an account")
    cursor: Number | None = Field(None, description="where the page begins; take it from `next`")


@read(router, "submissions", SubmissionPage, tag=tag_of_database)
def list_submissions(request: HttpRequest, wanted: Query[SubmissionFilters], window: Query[Window]) -> SubmissionPage:
    """List submissions, newest first."""
    conditions = chosen(state__in=wanted.state, author__username=wanted.author, number__lt=wanted.cursor)
    found = Submission.objects.filter(**conditions).select_related("author", "testbed").prefetch_related("runs")
    rows = list(found.defer("patch", "plan", "stages")[: window.limit + 1])
    page, following = cut(request, rows, window.limit, lambda row: row.number)
    return SubmissionPage(items=[SubmissionRow(**_row(row)) for row in page], next=following)


@read(router, "submissions/{number}", SubmissionDetail, may_lack=True, tag=tag_of_database)
def get_submission(request: HttpRequest, number: Number) -> SubmissionDetail:  # noqa: ARG001
    """Return one submission."""
    return _detail(_find(number))


@change(router, "submissions", SubmissionDetail, Action.SUBMIT, status=HTTPStatus.CREATED)
def submit_patch(request: HttpRequest, wanted: NewSubmission) -> SubmissionDetail:
    """Submit a patch.

    It waits for a maintainer's approval, unless a maintainer submits it with a token that may approve. A patch that
    does not apply is stored as a conflict, with the hunk in `reason`.
    """
    how = services.SubmissionRequest(
        testbed=wanted.testbed,
        matrix=wanted.tests,
        knobs="\n".join(f"{name}={value}" for name, value in wanted.tunables.items()),
        each=wanted.each,
        base=wanted.base,
        plan=wanted.plan,
        title=wanted.title,
        mirror=wanted.repository,
        ref=wanted.ref,
        message_id=wanted.message_id,
    )
    if bool(wanted.patch) == bool(wanted.ref):
        raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, "Send a patch, or name a ref with it: one of the two.")
    if wanted.message_id and wanted.ref:
        raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, "A ref has no message_id: leave it out.")
    try:
        return _detail(services.submit(actor_of(request), wanted.patch.encode("utf-8", "replace"), how))
    except services.DuplicateError as error:
        step = f"To measure it again, use {error.existing.address} or POST {_address(error.existing)}/rerun."
        raise RefusedError(HTTPStatus.CONFLICT, f"{error} {step}") from None
    except services.PROBLEMS as error:
        raise RefusedError(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None


@change(router, "submissions/{number}/cancel", SubmissionDetail, Action.CANCEL_OWN)
def cancel_submission(request: HttpRequest, number: Number) -> SubmissionDetail:
    """End a submission and its runs.

    One's own with the role submitter, any with the role maintainer.
    """
    return _act(number, lambda: services.cancel(actor_of(request), number))


@change(router, "submissions/{number}/approve", SubmissionDetail, Action.APPROVE)
def approve_submission(request: HttpRequest, number: Number) -> SubmissionDetail:
    """Approve a waiting patch, so that it is built and measured."""
    return _act(number, lambda: services.approve(actor_of(request), number))


@change(router, "submissions/{number}/refuse", SubmissionDetail, Action.APPROVE)
def refuse_submission(request: HttpRequest, number: Number, refusal: Refusal) -> SubmissionDetail:
    """Reject a waiting submission, with a reason."""
    return _act(number, lambda: services.refuse(actor_of(request), number, refusal.reason))


@change(router, "submissions/{number}/rerun", SubmissionDetail, Action.SUBMIT)
def rerun_submission(request: HttpRequest, number: Number, wanted: Rerun) -> SubmissionDetail:
    """Measure an approved submission again, after its runs are over.

    More boots decide open comparisons: `deciding_boots` is the required number.
    """

    def act() -> Submission:
        services.rerun(actor_of(request), number, wanted.boots)
        return _find(number)

    return _act(number, act)


def _act(number: int, act: Callable[[], Submission]) -> SubmissionDetail:
    _find(number)
    try:
        return _detail(act())
    except services.PROBLEMS as error:
        raise RefusedError(HTTPStatus.CONFLICT, str(error)) from None


def _find(number: int) -> Submission:
    try:
        return Submission.objects.select_related("author", "testbed").get(number=number)
    except Submission.DoesNotExist:
        raise Http404(f"There is no submission {number}; /api/v1/submissions lists those that there are.") from None


def _address(submission: Submission) -> str:
    return reverse("api-v1:get_submission", args=[submission.number])


def _row(submission: Submission) -> dict[str, Any]:
    return {
        "number": submission.number,
        "title": submission.title,
        "author": submission.author.username,
        "state": SubmissionState(submission.state),
        "base": submission.base,
        "revision": submission.revision,
        "testbed": submission.testbed.name,
        "seconds": submission.seconds,
        "created": submission.created,
        "runs": [
            RunOfSubmission(number=run.number, state=run.state, url=reverse("api-v1:get_run", args=[run.number]))
            for run in submission.runs.all()
        ],
        "url": _address(submission),
        "page": reverse("submissions:one", args=[submission.number]),
    }


def _detail(submission: Submission) -> SubmissionDetail:
    history = [
        SubmissionStep(
            at=step.at, from_state=step.from_state, to_state=SubmissionState(step.to_state), who=step.who,
            reason=step.reason,
        )
        for step in submission.transitions.all()
    ]  # fmt: skip
    return SubmissionDetail(
        **_row(submission),
        reason=submission.reason,
        stages=[StageOfSubmission(**stage) for stage in submission.stages],
        plan=submission.plan,
        history=history,
        patch=reverse("submissions:patch", args=[submission.number]),
        deciding_boots=found.needed if (found := more(submission, submission.newest_run)) else None,
    )
