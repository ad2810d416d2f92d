# SPDX-License-Identifier: BSD-2-Clause
"""Handling of a series: submitted when it is complete, and answered when it is measured or fails.

`attend` does all due steps, and may be called at any time by any number of processes.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from perfweb.accounts.actors import Actor
from perfweb.accounts.limits import Limit, NotNowError
from perfweb.accounts.models import Means, Role, User
from perfweb.accounts.permissions import NotAllowedError
from perfweb.faults import services as faults
from perfweb.lab.models import Testbed
from perfweb.lab.origins import Origin
from perfweb.mail import answers, sending
from perfweb.mail.models import PATIENCE, Posting, Series, SeriesState
from perfweb.runs.models import OPEN_STATES, RunState
from perfweb.submissions import services
from perfweb.submissions.commands import Request, RequestError, Verb, parse
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.services import PROBLEMS, DuplicateError

UNKNOWN_SENDERS = "unknown-senders"
"""The account of patches by senders without a proven account."""
KEPT = timedelta(days=7)
"""Max waiting time for an incomplete series, or one without a request."""
ANSWERS_WITHOUT_ACCOUNT = Limit("answers to an address without an account", 20, 24 * 3600)

ATTEND = faults.Task("attend to mail", "it is tried again; read the messenger's log")

log = logging.getLogger(__name__)


def attend(now: datetime | None = None) -> None:
    """Submits complete series, and answers finished ones, again if they were measured again."""
    now = now or timezone.now()
    gathering = Series.objects.filter(state=SeriesState.GATHERING).order_by("-version", "pk")
    asking = Posting.objects.exclude(request="").values("series")
    _each(gathering.filter(Q(pk__in=asking) | Q(changed__lt=now - KEPT)), lambda series: gather(series, now))
    working = Submission.objects.filter(runs__state__in=OPEN_STATES)
    over = Series.objects.filter(state=SeriesState.OVER)
    again = over.filter(pk__in=Series.submissions.through.objects.filter(submission__in=working).values("series"))
    _each(again, lambda series: become(series, SeriesState.SUBMITTED))
    _each(Series.objects.filter(state=SeriesState.SUBMITTED), _submitted)


def forget(now: datetime | None = None) -> int:
    """Deletes the patches of mails of long finished series; returns their number. The mails are kept, so that none is
    accepted again.
    """
    old = (now or timezone.now()) - timedelta(days=settings.MESSAGES_KEPT_DAYS)
    over = Series.objects.filter(state=SeriesState.OVER, changed__lt=old)
    return Posting.objects.filter(series__in=over).exclude(mbox=b"").update(mbox=b"")


def _each(chosen: QuerySet[Series], step: Callable[[Series], None]) -> None:
    """Calls a step for each series, except those that another process has locked."""

    @transaction.atomic
    def locked(key: int) -> None:
        if series := chosen.filter(pk=key).select_for_update(of=("self",), skip_locked=True).first():
            step(series)

    faults.for_each(ATTEND, list(chosen.values_list("pk", flat=True)), locked, lambda key: f"series {key}")


def gather(series: Series, now: datetime) -> None:
    """One step of a series that is not submitted yet."""
    postings = list(series.postings.defer("mbox"))
    asking = _posting_with_request(series)
    missing = _missing(series, postings)
    if asking is None or missing:
        if now - series.changed > KEPT:
            series.delete()
        elif asking is not None and now - series.changed > PATIENCE:
            answer(series, asking, "missing", answers.missing(missing, series.total or 0))
        return
    try:
        request = _request(postings)
        if request.verb != Verb.RUN:
            _over(series, asking, answers.helped())
            return
        if newer := _newer(series, postings, now):
            if newer.series.state != SeriesState.GATHERING:  # else it may still be refused
                _over(series, asking, answers.superseded(newer.subject))
            return
        _submit(series, postings, asking, request)
    except RequestError as error:
        _over(series, asking, answers.problem(str(error)))
    except NotNowError as error:  # the next call will do it
        log.warning("%s: %s", series, error)


def _submitted(series: Series) -> None:
    """Answers when all requested runs have ended."""
    submissions = list(series.submissions.order_by("number"))
    if not all(_is_over(submission) for submission in submissions):
        return
    asking = _posting_with_request(series)
    if asking is None:
        return
    text = answers.result(submissions, asking.request, trailer=series.trailer)
    newest = max((run.number for one in submissions for run in one.runs.all()), default=0)
    public = any(answers.is_measured(one) for one in submissions) and not sending.list_answered(series)
    answer(series, asking, f"result-{newest}", text, public=public)
    become(series, SeriesState.OVER)


def _posting_with_request(series: Series) -> Posting | None:
    """Return the mail with the request."""
    return series.postings.exclude(request="").defer("mbox").first()


def _request(postings: Sequence[Posting]) -> Request:
    """Return the request in the mails of a series. Raises RequestError, also for an invalid mail."""
    if problem := next((posting.problem for posting in postings if posting.problem), ""):
        raise RequestError(problem)
    requests = {posting.request for posting in postings if posting.request}
    if len(requests) > 1:
        raise RequestError(
            "The mails of this series have different requests: write one line, preferably in the first mail."
        )
    return parse(requests.pop())


def _missing(series: Series, postings: Sequence[Posting]) -> list[int]:
    return sorted(set(range(1, (series.total or 0) + 1)) - {posting.number for posting in postings})


def _submit(series: Series, postings: Sequence[Posting], asking: Posting, request: Request) -> None:
    """Make a submission for each combination of knobs, or return why there is none."""
    actor, problems = _actor(series), list[str]()
    series.trailer = request.trailer
    mbox = b"".join(bytes(posting.mbox) for posting in postings)
    for wanted in request.wanted(_testbed()):
        try:
            submission = services.submit(actor, mbox, wanted, lambda: _supersede(series, postings))
        except DuplicateError as error:
            submission = error.existing
        except (*PROBLEMS, NotAllowedError) as error:
            shut = series.user is None and isinstance(error, NotAllowedError)
            problems.append("Mails of people without an account here are not measured." if shut else str(error))
            continue
        if submission.state == SubmissionState.CONFLICT:
            _over(series, asking, answers.conflict(submission))
            return
        series.submissions.add(submission)
    submissions = list(series.submissions.order_by("number"))
    if not submissions:
        _over(series, asking, answers.problem(problems[0]))
        return
    _supersede(series, postings)
    answer(series, asking, "received", answers.received(submissions, problems, known=series.user is not None))
    become(series, SeriesState.SUBMITTED)


def _supersede(series: Series, postings: Sequence[Posting]) -> None:
    """Ends older versions by the same sender: of the same thread, or with a patch of the same title.

    A current run continues unless the sender is verified, because otherwise any user could stop it.
    """
    older = _of_sender(series).filter(version__lt=series.version).exclude(state=SeriesState.OVER)
    for old in older.filter(pk__in=_related(older, postings).values("series")):
        for submission in old.submissions.all():
            cancel(old, submission)
        if posting := _posting_with_request(old):
            answer(old, posting, "superseded", answers.superseded(postings[0].subject))
        become(old, SeriesState.OVER)


def _newer(series: Series, postings: Sequence[Posting], now: datetime) -> Posting | None:
    """Return the first mail of a newer version that came shortly before this one, because mails can overtake each
    other.

    A version counts if it is measured itself: not a single new patch in reply to an old one, a cover letter without its
    patches, or a version without a valid request. A reply to a version was written after it.
    """
    answered = {key for posting in postings for key in posting.related}
    newer = _of_sender(series).filter(version__gt=series.version, changed__gt=now - KEPT)
    newer = newer.exclude(postings__message_id__in=answered)
    related = newer.filter(pk__in=_related(newer, postings).values("series"))
    measured = [one.pk for one in related if one.submissions.exists() or _is_ready(one)]
    return _related(newer.filter(pk__in=measured), postings).order_by("-series__version", "number").first()


def _is_ready(series: Series) -> bool:
    """Return whether the next step of a series submits it."""
    postings = list(series.postings.defer("mbox"))
    if series.state != SeriesState.GATHERING or _missing(series, postings):
        return False
    try:
        return any(posting.request for posting in postings) and _request(postings).verb == Verb.RUN
    except RequestError:
        return False


def _of_sender(series: Series) -> QuerySet[Series]:
    return Series.objects.filter(sender=series.sender, proven=series.proven, user=series.user)


def _related(among: QuerySet[Series], postings: Sequence[Posting]) -> QuerySet[Posting]:
    """Return the mails of other series in the same thread, or with the title of one of these mails."""
    thread = [key for posting in postings for key in posting.related]
    titles = [posting.title for posting in postings]
    return Posting.objects.filter(Q(related__overlap=thread) | Q(title__in=titles), series__in=among)


def cancel(series: Series, submission: Submission) -> None:
    """End a submission of this series only, as far as its sender is permitted to."""
    actor = _actor(series)
    if submission.author != actor.user or _others(series, submission).exists():
        return
    if series.user is None and submission.state != SubmissionState.WAITING:
        return
    try:
        services.cancel(actor, submission.number)
    except (*PROBLEMS, NotAllowedError) as error:
        log.info("%s: %s", submission, error)


def _others(series: Series, submission: Submission) -> QuerySet[Series]:
    """Return the other series that still need a submission, which the same patch shares."""
    return submission.series.exclude(pk=series.pk).exclude(state=SeriesState.OVER)


def _is_over(submission: Submission) -> bool:
    if submission.state != SubmissionState.APPROVED:
        return submission.state != SubmissionState.WAITING
    # An interrupted one continues when a user resumes it.
    return all(run.is_over and run.state != RunState.INTERRUPTED for run in submission.runs.all())


def _actor(series: Series) -> Actor:
    """The submitter. Unknown senders share one account, which never gets a higher role than submitter."""
    if series.user is not None:
        return Actor(series.user.username, series.user.role, Means.MAIL, user=series.user)
    account, _ = User.objects.get_or_create(
        username=UNKNOWN_SENDERS, defaults={"role": Role.SUBMITTER, "password": "!"}
    )
    return Actor(UNKNOWN_SENDERS, min(account.role, Role.SUBMITTER), Means.MAIL, user=account)


def _testbed() -> str:
    """The default testbed."""
    usual = (
        Testbed.objects.exclude(inventory="")
        .filter(origin=Origin.MEASURED)
        .order_by("pk")
        .values_list("name", flat=True)
        .first()
    )
    return settings.MAIL_TESTBED or usual or ""


def answer(series: Series, posting: Posting, occasion: str, text: str, *, public: bool = False) -> None:
    """Answer, but with a limit for addresses without an account, which may be forged.

    Mails with a forged From use a separate limit, and not that of the proven sender.
    """
    if sending.answered(series, occasion):
        return
    if not may_answer(series.reply_to, series.sender, proven=series.proven, known=series.user is not None):
        return
    sending.answer(series, posting, occasion, text, public=public)


def may_answer(reply_to: Sequence[str], sender: str, *, proven: bool, known: bool) -> bool:
    """Count a response, unless it goes only to an account's address; False if an address has had too many.

    `known` means that `sender` is that address. Addresses in Reply-To have their own limit, also in mails of accounts,
    because they may belong to other users.
    """
    named = [f"reply-to {address}" for address in reply_to if address != sender]
    own = [] if known else [f"{'proven' if proven else 'unproven'} {sender}"]
    try:
        for key in named or own:
            ANSWERS_WITHOUT_ACCOUNT.spend(key)
    except NotNowError as error:
        log.warning("%s is not answered: %s", sender, error)
        return False
    return True


def _over(series: Series, posting: Posting, text: str) -> None:
    answer(series, posting, "problem", text)
    become(series, SeriesState.OVER)


def become(series: Series, state: SeriesState) -> None:
    series.state = state
    series.save()
