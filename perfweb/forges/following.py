# SPDX-License-Identifier: BSD-2-Clause
"""Posts what there is to say about everything that was asked for and is not settled."""

import logging

from django.db.models import Q

from perfweb.forges.comments import mark, report
from perfweb.forges.models import Asked
from perfweb.outbox import services as outbox
from perfweb.runs.models import OPEN_STATES

log = logging.getLogger(__name__)


def follow() -> None:
    """Say what is new; one that was settled is followed again where it is measured again."""
    again = Q(submissions__runs__state__in=OPEN_STATES)
    for asked in Asked.objects.filter(Q(settled=False) | again).select_related("project__mirror").distinct():
        if asked.answer or asked.submissions.exists():  # else it is being acted on
            try:
                tell(asked)
            except Exception:  # of one: the others are told
                log.exception("%s cannot be told", asked)


def tell(asked: Asked) -> None:
    """Post our comment and the status of the commit; the outbox says them again only where they have changed."""
    told = report(asked)
    channel = f"forge:{asked.project.mirror.name}"
    comment = {"what": "comment", "pull": asked.pull, "body": told.body, "mark": mark(asked.pk)}
    outbox.post(channel, f"comment {asked.pk}", comment)
    if told.state and asked.head and not asked.outdated:
        status = {"state": told.state, "description": told.description, "address": told.address}
        outbox.post(channel, f"status {asked.head}", {"what": "status", "sha": asked.head, **status})
    Asked.objects.filter(pk=asked.pk).update(settled=told.final)
