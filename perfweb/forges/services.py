# SPDX-License-Identifier: BSD-2-Clause
"""Handles deliveries of forges: a request in a comment becomes submissions, or an answer with the error."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from perfweb.accounts.actors import Actor
from perfweb.accounts.limits import NotNowError
from perfweb.accounts.models import Means, Role, User
from perfweb.accounts.permissions import NotAllowedError
from perfweb.builds import mirrors
from perfweb.builds.mirrors import FetchError
from perfweb.faults import services as faults
from perfweb.forges.markdown import block, code
from perfweb.forges.models import CommentRequest, Delivery, Member, Project
from perfweb.forges.table import FORGES, Event
from perfweb.outbox.services import FIRST_PAUSE
from perfweb.plaintext import plain
from perfweb.submissions import services as submissions
from perfweb.submissions.commands import Request, RequestError, Verb, find, help_text, parse
from perfweb.submissions.models import Submission, SubmissionState

log = logging.getLogger(__name__)

PREFIX = "/perf"
MOST_ATTEMPTS = 60
"""Of a request whose repository or quota is not available, one a minute."""
ACT = faults.Task("act on a webhook", "it is tried again each minute for an hour; read the messenger's log")


def act(number: int, now: datetime | None = None) -> None:
    """Handle the request of a delivery once; failures are retried each minute for an hour."""
    now = now or timezone.now()
    with transaction.atomic():
        due = Delivery.objects.select_for_update(of=("self",), skip_locked=True).filter(pk=number, due__lte=now)
        delivery = due.select_related("project__mirror", "project__account", "project__testbed").first()
        if delivery is None:
            return
        delivery.attempts += 1
        delivery.due = now + FIRST_PAUSE
        delivery.save(update_fields=["attempts", "due"])
    last = delivery.attempts >= MOST_ATTEMPTS
    try:
        _act(delivery.project, Event(**delivery.event), last=last)
    except (NotNowError, FetchError) as error:
        log.warning("delivery %s waits: %s", delivery, error)
        return
    except Exception:
        log.error("delivery %s: attempt %d of %d", delivery, delivery.attempts, MOST_ATTEMPTS)
        if last:
            Delivery.objects.filter(pk=delivery.pk).update(due=None)
        raise
    Delivery.objects.filter(pk=delivery.pk).update(due=None)


def act_on_all(now: datetime | None = None) -> None:
    """Do what is due, the oldest first: what no task was made for, and what was not possible before."""
    now = now or timezone.now()
    act_on(list(Delivery.objects.filter(due__lte=now).values_list("pk", flat=True)[:20]), now)


def act_on(numbers: Iterable[int], now: datetime | None = None) -> None:
    """Handle the requests of several deliveries; one that fails does not stop the others."""
    faults.for_each(ACT, numbers, lambda number: act(number, now), lambda number: f"delivery {number}")


def forget(now: datetime | None = None) -> int:
    """Delete the content of old deliveries; returns the number.

    Their identifiers and digests are kept, because most signatures of forges have no timestamp: an attacker who
    recorded a forgotten delivery could send it again.
    """
    old = (now or timezone.now()) - timedelta(days=settings.MESSAGES_KEPT_DAYS)
    return Delivery.objects.filter(due=None, received__lt=old).exclude(event={}).update(event={})


def _act(project: Project, event: Event, *, last: bool) -> None:
    if event.kind == "push":
        _outdate(CommentRequest.objects.filter(project=project, pull=event.pull).exclude(head=event.head))
    elif not event.bot and event.login.lower() != project.login.lower():
        _answer(project, event, last=last)


def _answer(project: Project, event: Event, *, last: bool) -> None:
    words, problem = "", ""
    try:
        found = find(event.body, PREFIX)
        if found is None:
            return
        words = found
        request = parse(words)
    except RequestError as error:
        problem = f"{code(str(error))} `{PREFIX} help` lists all requests."
    comment, _ = CommentRequest.objects.get_or_create(
        project=project, comment=event.comment,
        defaults={"pull": event.pull, "login": event.login[:100], "words": plain(words)},
    )  # fmt: skip
    if (comment.answer and not comment.waiting) or comment.submissions.exists():
        return  # handled before, by a process that died before it could record that
    actor = _actor(project, event)
    if not problem:
        try:
            problem = _do(comment, event, request, actor)
        except NotAllowedError as error:
            problem = code(str(error))
        except (NotNowError, FetchError) as error:
            if last or not comment.waiting:  # the time until the next attempt would edit our comment each minute
                comment.answer, comment.waiting, comment.settled = _failed(str(error), last=last), not last, False
                comment.save(update_fields=["answer", "waiting", "settled"])
            if last:
                return
            raise
        except submissions.PROBLEMS as error:
            problem = code(str(error))
    comment.answer, comment.waiting, comment.settled = problem, False, False
    comment.save(update_fields=["answer", "head", "waiting", "settled"])


def _failed(problem: str, *, last: bool) -> str:
    """The answer to a request that is not possible now."""
    if last:
        return f"{MOST_ATTEMPTS} attempts failed: {code(problem)}. Repeat the request later."
    return (
        f"Not possible now: {code(problem)}. It is tried again each minute for an hour, and this comment will change."
    )


def _do(comment: CommentRequest, event: Event, request: Request, actor: Actor) -> str:
    """Handle a request; returns the answer besides results."""
    if request.verb == Verb.HELP:
        return block(help_text(PREFIX))
    if request.verb == Verb.RUN:
        return _run(comment, event, request, actor)
    newest = _measured(comment).last()
    if newest is None:
        return f"No request was made here yet. Request one by `{PREFIX} run tcp`."
    if request.verb == Verb.CANCEL:
        return _cancel(comment, newest, actor)
    states = ", ".join(f"[{one}]({one.address}): {_state(one)}" for one in newest.submissions.all())
    return f"Of commit `{newest.head[:12]}`: {states}."


def _run(comment: CommentRequest, event: Event, request: Request, actor: Actor) -> str:
    """Make submissions of the pull request as it is now, one for each combination of knobs; returns why not all."""
    if event.closed:
        return "This pull request is closed, so it is not measured. Reopen it, and repeat the request."
    project = comment.project
    ref = FORGES[project.forge].pull_ref.format(pull=event.pull)
    base = request.base or project.mirror.branch
    repository = mirrors.fetch(project.mirror, base, ref, seconds=mirrors.MESSENGER_SECONDS)
    found = mirrors.changes(repository, base, ref, each=request.each)
    made, problem = list[Submission](), ""
    for wanted in request.wanted(project.testbed.name, found.base, plain(event.title), project.mirror.name):
        try:
            made.append(submissions.submit(actor, found.patch, replace(wanted, base=found.base)))
        except submissions.DuplicateError as error:
            made.append(error.existing)
        except submissions.PROBLEMS as error:
            problem = code(str(error))
            break
    if made:
        _outdate(_measured(comment))
        comment.head = found.head
        comment.submissions.set(made)
    return problem


def _cancel(comment: CommentRequest, newest: CommentRequest, actor: Actor) -> str:
    """Cancel the newest request, for its author or a member with the permission."""
    if actor.user == comment.project.account and comment.login.lower() != newest.login.lower():
        return "Only the user who requested it, or a user on the allow-list, can cancel it."
    alive = list(newest.submissions.filter(state__in=[SubmissionState.WAITING, SubmissionState.APPROVED]))
    for one in alive:
        submissions.cancel(actor, one.number)
    return "Cancelled." if alive else "The run has ended, so it cannot be cancelled."


def _actor(project: Project, event: Event) -> Actor:
    """The actor of a forge user. Users not on the allow-list act as the project's account. The role of a maintainer
    counts for their own pull request only, because the head of another one can change after the comment.
    """
    member = Member.objects.select_related("user").filter(project=project, login__iexact=event.login).first()
    if member is not None and member.person is None:
        Member.objects.filter(pk=member.pk, person__isnull=True).update(person=event.person)
        member.person = event.person
    user: User = member.user if member is not None and member.person == event.person else project.account
    known = user != project.account
    role = user.role if known and event.own else min(user.role, Role.SUBMITTER)
    return Actor(user.username, role, Means.COMMENT, user=user)


def _measured(comment: CommentRequest) -> QuerySet[CommentRequest]:
    others = CommentRequest.objects.filter(project=comment.project, pull=comment.pull).exclude(pk=comment.pk)
    return others.filter(submissions__isnull=False).distinct()


def _outdate(comments: QuerySet[CommentRequest]) -> None:
    """Have our comments say that there is something newer."""
    keys = list(comments.filter(outdated=False, submissions__isnull=False).values_list("pk", flat=True))
    CommentRequest.objects.filter(pk__in=keys).update(outdated=True, settled=False)


def _state(submission: Submission) -> str:
    run = submission.newest_run
    return f"run {run.number} {run.get_state_display()}" if run else submission.get_state_display()
