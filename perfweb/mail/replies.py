# SPDX-License-Identifier: BSD-2-Clause
"""Later requests of a series' sender, in a reply with a line `perf:`."""

import hashlib

from perfweb.mail import answers
from perfweb.mail.models import Posting, Series, SeriesState
from perfweb.mail.series import answer, become, cancel
from perfweb.submissions.commands import RequestError, Verb, parse


def obey(series: Series, reply: Posting, words: str) -> None:
    """Does it, and answers the reply; a second time does nothing."""
    known = hashlib.sha256(reply.message_id.encode()).hexdigest()[:16]
    answer(series, reply, f"reply-{known}", _said(series, words))


def _said(series: Series, words: str) -> str:
    try:
        verb = parse(words).verb
    except RequestError as error:
        return answers.misunderstood(str(error))
    if verb == Verb.HELP:
        return answers.helped()
    if verb == Verb.RUN:
        return answers.run_again()
    if verb == Verb.CANCEL:
        for submission in series.submissions.all():
            cancel(series, submission)
        if series.state == SeriesState.GATHERING:
            become(series, SeriesState.OVER)
    return answers.status(list(series.submissions.order_by("number")))
