# SPDX-License-Identifier: BSD-2-Clause
"""Posts the state of all requests that have no final result yet."""

from django.db.models import Q

from perfweb.faults import services as faults
from perfweb.forges.comments import mark, report
from perfweb.forges.models import CommentRequest
from perfweb.forges.sending import channel
from perfweb.outbox import services as outbox
from perfweb.runs.models import OPEN_STATES

REPORT = faults.Task("report to a forge", "it is tried again; read the messenger's log")


def follow() -> None:
    """Post what has changed; a final request is followed again if it is measured again."""
    again = Q(submissions__runs__state__in=OPEN_STATES)
    open_requests = CommentRequest.objects.filter(Q(settled=False) | again).select_related("project__mirror").distinct()
    faults.for_each(REPORT, open_requests, _follow)


def _follow(request: CommentRequest) -> None:
    if request.answer or request.submissions.exists():  # another worker is handling it
        post_report(request)


def post_report(request: CommentRequest) -> None:
    """Post the comment and the commit status; the outbox sends them again only if they have changed."""
    reply, to = report(request), channel(request.project)
    comment = {"what": "comment", "pull": request.pull, "body": reply.body, "mark": mark(request.pk)}
    outbox.post(to, f"comment {request.pk}", comment)
    if reply.state and request.head and not request.outdated:
        status = {"state": reply.state, "description": reply.description, "address": reply.address}
        outbox.post(to, f"status {request.head}", {"what": "status", "sha": request.head, **status})
    CommentRequest.objects.filter(pk=request.pk).update(settled=reply.final)
