# SPDX-License-Identifier: BSD-2-Clause
"""Later requests of a series' sender, in a reply with a line `perf:`."""

import hashlib

from perfweb.mail import answers, sending
from perfweb.mail.messages import IgnoredError, Message
from perfweb.mail.models import Posting, Series, SeriesState
from perfweb.mail.series import answer, become, cancel, may_answer
from perfweb.submissions.commands import RequestError, Verb, parse


def obey(series: Series, reply: Posting, words: str) -> None:
    """Executes the request, and answers the reply; a second call does nothing."""
    known = hashlib.sha256(reply.message_id.encode()).hexdigest()[:16]
    answer(series, reply, f"reply-{known}", _result(series, words))


def explain(message: Message, *, known: bool) -> None:
    """Answers a request about no series of its sender; `known` means that the sender has an account."""
    try:
        helps = parse(message.request).verb == Verb.HELP
    except RequestError:
        helps = False
    if not may_answer(message.reply_to, message.sender, proven=message.proven, known=known):
        raise IgnoredError(f"{message.sender} has had too many answers")
    sending.answer_mail(message, answers.helped() if helps else answers.no_series())


def _result(series: Series, words: str) -> str:
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
