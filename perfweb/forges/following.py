# SPDX-License-Identifier: BSD-2-Clause
"""Posts the state of all requests that have no final result yet."""

from django.db.models import Q

from perfweb.faults import services as faults
from perfweb.forges.comments import mark, report
from perfweb.forges.models import CommentRequest
from perfweb.outbox import services as outbox
from perfweb.runs.models import OPEN_STATES

REPORT = faults.Task("report to a forge", "it is tried again; read the messenger's log")


def follow() -> None:
    """Post what has changed; a final request is followed again if it is measured again."""
    again = Q(submissions__runs__state__in=OPEN_STATES)
    open_requests = CommentRequest.objects.filter(Q(settled=False) | again).select_related("project__mirror").distinct()
    faults.for_each(REPORT, open_requests, _follow)


def _follow(asked: CommentRequest) -> None:
    if asked.answer or asked.submissions.exists():  # another worker is handling it
        post_report(asked)


def post_report(asked: CommentRequest) -> None:
    """Post the comment and the commit status; the outbox sends them again only if they have changed."""
    told = report(asked)
    channel = f"forge:{asked.project.mirror.name}"
    comment = {"what": "comment", "pull": asked.pull, "body": told.body, "mark": mark(asked.pk)}
    outbox.post(channel, f"comment {asked.pk}", comment)
    if told.state and asked.head and not asked.outdated:
        status = {"state": told.state, "description": told.description, "address": told.address}
        outbox.post(channel, f"status {asked.head}", {"what": "status", "sha": asked.head, **status})
    CommentRequest.objects.filter(pk=asked.pk).update(settled=told.final)
