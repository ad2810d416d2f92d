# SPDX-License-Identifier: BSD-2-Clause
"""Stores mails one by one, in any order of arrival, and assembles those of a series."""

import re
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from perfweb.accounts.limits import Limit
from perfweb.accounts.models import User
from perfweb.mail import replies
from perfweb.mail.messages import IgnoredError, Message, Rules, read_message
from perfweb.mail.models import PATIENCE, Address, Posting, Series, SeriesState

FROM_ADDRESS = Limit("mails from an address", 200, 3600)
FROM_ALL = Limit("mails of a kind", 500, 3600)

# What one call of git format-patch --thread or of git send-email gives all its mails.
_CALL = re.compile(r"(?:[0-9a-f]{40}|cover)\.(\d+)\.git\.|(\d{14}\.\d+)-\d+-", re.ASCII)


def rules() -> Rules:
    """The configuration of mail."""
    return Rules(settings.MAIL_ADDRESS, settings.MAIL_AUTHSERV_ID, settings.MAIL_LISTS)


def receive(content: bytes, envelope_sender: str | None = None) -> str:
    """Stores a mail with a patch, or handles a later request of its sender; returns which, for the log. When it
    returns, the mail is in the database.

    Raises IgnoredError for a mail that is ignored, and limits.NotNowError for too many mails.
    """
    message = read_message(content, rules(), envelope_sender)
    if not message.is_patch and not message.request:
        raise IgnoredError("it is no patch, by its subject, and has no request")
    account = _account(message)
    _limit(message, account, envelope_sender)
    return _keep(message, account) if message.is_patch else _obey(message, account)


def _limit(message: Message, account: User | None, envelope_sender: str | None) -> None:
    """Count a mail. Raises limits.NotNowError.

    No sender can use up the limits of another one whose mail the signature proves. An account has a separate limit,
    because any owner of a domain can prove senders without number. An unproven mail counts for its envelope, never for
    the address in From.
    """
    if account is not None:
        FROM_ADDRESS.spend(f"account {account.pk}")
        return
    proof = "proven" if message.proven else "unproven"
    FROM_ADDRESS.spend(f"{proof} {message.sender if message.proven else envelope_sender or ''}")
    FROM_ALL.spend(proof)


def _keep(message: Message, account: User | None) -> str:
    with transaction.atomic():
        # One mail of a sender at a time: two parallel mails of a series would not find each other.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"mail {message.sender}"])
        _refuse_twice(message)
        series = _series_of(message, account)
        Series.objects.filter(pk=series.pk).update(changed=timezone.now())
        Posting.objects.create(
            series=series,
            message_id=message.id,
            related=[message.id, *message.parents],
            subject=message.subject,
            title=message.title,
            number=message.number,
            request=message.request,
            mbox=message.mbox,
            problem=message.problem,
        )
    return f"kept {message.id} of {series}"


def _refuse_twice(message: Message) -> None:
    """Store a mail once; but a proven copy replaces an unproven one that was not submitted yet."""
    known = Posting.objects.filter(message_id=message.id).select_related("series").first()
    if known is None:
        return
    if not message.proven or known.series.proven or known.series.state != SeriesState.GATHERING:
        raise IgnoredError(f"{message.id} is here already")
    known.delete()
    if not known.series.postings.exists():
        known.series.delete()


def _obey(message: Message, account: User | None) -> str:
    """Handle a request in a reply by the sender of the series; answer any other request with the possible ones."""
    with transaction.atomic():
        thread = Posting.objects.filter(message_id__in=message.parents).values("series")
        own = Series.objects.filter(sender=message.sender, proven=message.proven, user=account, pk__in=thread)
        series = own.select_for_update(of=("self",)).order_by("pk").last()
        if series is None:
            replies.explain(message, known=account is not None)
            return f"answered the request of {message.id}, which is about no series of its sender"
        reply = Posting(message_id=message.id, related=[message.id, *message.parents], subject=message.subject)
        replies.obey(series, reply, message.request)
    return f"handled the request of {message.id} about {series}"


def _account(message: Message) -> User | None:
    """Return the account of a mail: a From header alone proves nothing."""
    if not message.proven:
        return None
    known = Address.objects.filter(address=message.sender).select_related("user").first()
    return known.user if known else None


def _series_of(message: Message, user: User | None) -> Series:
    """Return the series of a mail: same sender, version and length, and neighbours in the thread if there is one."""
    same: dict[str, Any] = {
        "sender": message.sender,
        "proven": message.proven,
        "user": user,
        "version": message.version,
        "total": message.total,
    }
    if message.number is not None:
        near = [message.id, *message.parents[-1:]]
        found = Series.objects.filter(**same, postings__related__overlap=near).distinct().order_by("pk")
        lacking = [series for series in found if message.number not in _numbers(series) and _is_near(message, series)]
        if lacking:
            return _joined(lacking)
        if not message.parents and (beside := _without_threading(message, same)):
            return beside
    reply_to = [] if message.reply_to == (message.sender,) else list(message.reply_to)
    return Series.objects.create(**same, copy_to=message.copy_to, reply_to=reply_to)


def _is_near(message: Message, series: Series) -> bool:
    """Return whether a mail of a series answers this one, this one answers it, or both answer the same mail.

    Older mails of the thread do not count, because a new series may be a reply to an old one. A cover letter may be
    such a reply, too: it belongs to a series only if a mail of the series answers it.
    """
    for posting in series.postings.only("message_id", "related"):
        answered = posting.related[-1] if len(posting.related) > 1 else ""
        if answered == message.id:
            return True
        if message.number != 0 and message.parents and message.parents[-1] in {posting.message_id, answered}:
            return True
    return False


def _without_threading(message: Message, same: dict[str, Any]) -> Series | None:
    """Return the only new series that may lack a mail which answers none, and whose mails answer none, either."""
    new = Series.objects.filter(**same, state=SeriesState.GATHERING, changed__gt=timezone.now() - PATIENCE)
    lacking = [series for series in new if message.number not in _numbers(series) and _is_beside(message, series)]
    return lacking[0] if len(lacking) == 1 else None


def _is_beside(message: Message, series: Series) -> bool:
    """Return whether no mail of a series answers another one, or is known to be of another call of git."""
    own = _CALL.search(message.id)
    for posting in series.postings.only("message_id", "related"):
        call = _CALL.search(posting.message_id)
        if len(posting.related) > 1 or (own and call and own.groups() != call.groups()):
            return False
    return True


def _joined(parts: list[Series]) -> Series:
    """Merge parts of a series that this mail connects, if they fit together."""
    first = parts[0]
    for other in parts[1:]:
        if other.state == SeriesState.GATHERING and not _numbers(first) & _numbers(other):
            other.postings.update(series=first)
            other.delete()
    return first


def _numbers(series: Series) -> set[int | None]:
    return set(series.postings.values_list("number", flat=True))
