# SPDX-License-Identifier: BSD-2-Clause
"""Polls the projects for new series, and submits each once when all of its patches have arrived."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from perfweb.accounts.actors import Actor
from perfweb.accounts.limits import NotNowError
from perfweb.accounts.models import Means, Role
from perfweb.accounts.permissions import NotAllowedError
from perfweb.builds import mirrors
from perfweb.builds.mirrors import FetchError
from perfweb.faults import services as faults
from perfweb.outbox.services import LaterError, NeverError
from perfweb.patchwork.client import Client, Patch, ShapeError
from perfweb.patchwork.models import Project, Series
from perfweb.plaintext import plain
from perfweb.submissions import services as submissions
from perfweb.submissions.models import SubmissionState
from perfweb.transitions import IllegalTransitionError

log = logging.getLogger(__name__)

PAUSE = timedelta(minutes=5)
PATIENCE = timedelta(days=1)
"""Time in which the patches of a series have to arrive, and in which a submission that is not possible now is tried."""
AT_ONCE = 5
"""Max series of a project that one poll tries to submit: those that it has not tried for longest, so that series which
stay incomplete do not keep others waiting.
"""
POLL = faults.Task("poll a Patchwork", "it is tried again after five minutes; read the messenger's log")


def poll_all(now: datetime | None = None) -> None:
    """Poll the projects that are due."""
    now = now or timezone.now()
    due = Project.objects.filter(due__lte=now).select_related("mirror", "testbed", "account")
    faults.for_each(POLL, list(due), lambda project: _poll(project, now))


def _poll(project: Project, now: datetime) -> None:
    """Read what is new in a project, and submit it. An error is kept with the project."""
    if not Project.objects.filter(pk=project.pk, due=project.due).update(due=now + PAUSE):
        return  # another worker polls it
    problem, pause = "", PAUSE
    client = Client(project)
    try:
        _notice(project, client.patches())
        open_ones = project.series.filter(submission=None, problem="")
        waiting = list(open_ones.order_by(F("tried").asc(nulls_first=True), "pk")[:AT_ONCE])
        if waiting:
            _fetch(project)
        for series in waiting:
            _submit(client, series, now)
    except (LaterError, NeverError, ShapeError) as error:
        log.warning("Patchwork %s: %s", project, error)
        problem = plain(str(error))[:1000]
        pause = max(pause, (error.pause if isinstance(error, LaterError) else None) or pause)
    Project.objects.filter(pk=project.pk).update(due=now + pause, problem=problem)


def _fetch(project: Project) -> None:
    """Fetch the repository, because a new series is often based on a new commit. What is here may do without."""
    try:
        mirrors.fetch(project.mirror, seconds=mirrors.MESSENGER_SECONDS)
    except FetchError as error:
        log.warning("Patchwork %s: %s", project, error)


def _notice(project: Project, patches: Iterable[Patch]) -> None:
    """Store the series of new patches; what was read before an error stays. States are checked here, too."""
    for patch in patches:
        if patch.state not in project.states:
            continue
        with transaction.atomic():
            for number in patch.series:
                Series.objects.get_or_create(project=project, number=number)
            Project.objects.filter(pk=project.pk, since__lt=patch.date).update(since=min(patch.date, timezone.now()))


def _submit(client: Client, series: Series, now: datetime) -> None:
    """Submit a series, or note why it is not measured. Raises LaterError, NeverError and ShapeError for its project."""
    late = now - series.created > PATIENCE
    Series.objects.filter(pk=series.pk).update(tried=timezone.now())
    try:
        detail = client.series(series.number)
        if not detail.whole:
            problem = "Not all of its patches have arrived." if late else ""
        else:
            series.name, series.version, series.submitter = plain(detail.name), detail.version, detail.submitter
            series.patches = list(detail.patches)
            problem = _submit_mails(client, series)
    except (NotNowError, FetchError, submissions.QuotaError) as error:
        problem = str(error) if late else ""
    except (NeverError, ShapeError) as error:
        problem = str(error)  # of this series: another one may be good
    series.problem = plain(problem)[:1000]
    series.save(update_fields=["name", "version", "submitter", "patches", "submission", "problem"])


def _submit_mails(client: Client, series: Series) -> str:
    """Submit the mails of a series; return why that is not possible."""
    project = series.project
    account = project.account
    # Anyone can send a series to a list, so a maintainer approves it, also if the account is a maintainer's.
    actor = Actor(account.username, min(account.role, Role.SUBMITTER), Means.MAIL, user=account)
    wanted = submissions.SubmissionRequest(
        testbed=project.testbed.name, matrix=project.matrix, each=project.each, mirror=project.mirror.name,
        title=series.name[: submissions.LONGEST_TITLE],
    )  # fmt: skip
    if len(series.patches) < 2:
        wanted = replace(wanted, each=False)
    try:
        series.submission = submissions.submit(actor, client.mbox(series.number), wanted, _withdrawing(actor, series))
    except submissions.DuplicateError as error:
        series.submission = error.existing
    except submissions.QuotaError:
        raise
    except (*submissions.PROBLEMS, NotAllowedError) as error:
        return str(error)
    return ""


def _withdrawing(actor: Actor, series: Series) -> Callable[[], None]:
    """Return what ends the older versions of a series: those of the same sender and name."""

    def withdraw() -> None:
        older = Series.objects.filter(
            project=series.project, name=series.name, submitter=series.submitter, version__lt=series.version,
            submission__state__in=[SubmissionState.WAITING, SubmissionState.APPROVED], settled=False,
        ).select_related("submission")  # fmt: skip
        for one in older:
            if one.submission:
                try:
                    submissions.cancel(actor, one.submission.number)
                except (submissions.SubmissionError, IllegalTransitionError) as error:
                    log.info("%s stays: %s", one, error)

    return withdraw
