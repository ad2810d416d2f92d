# SPDX-License-Identifier: BSD-2-Clause
"""Queues letters and delivers them: none is lost while the recipient is down, and none is sent too often.

A sender is called again after a crash, so it first checks whether the letter was sent.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Least
from django.utils import timezone
from django.utils.module_loading import import_string

from perfweb.faults import services as faults
from perfweb.outbox.models import Letter
from perfweb.plaintext import plain

log = logging.getLogger(__name__)

FIRST_PAUSE = timedelta(seconds=60)
"""Longer than a sender takes, so that a letter is not tried twice at the same time."""
AWAY = timedelta(seconds=40)
"""Pause of a channel whose recipient does not answer. One letter tries it each time, and all go on within a minute
after it returns.
"""
LONGEST_PAUSE = timedelta(hours=1)
PATIENCE = timedelta(days=14)
"""Time that a letter is retried."""
AT_ONCE = 50
DELIVER = faults.Task("deliver", "it is tried again after a pause; read the messenger's log")


class LaterError(Exception):
    """The letter could not be delivered now. `pause` is the pause that the recipient requires; `everything` means that
    it applies to the whole channel and not only to this letter.
    """

    def __init__(self, reason: str, pause: timedelta | None = None, *, everything: bool = False) -> None:
        super().__init__(reason)
        self.pause, self.everything = pause, everything


class NeverError(Exception):
    """The letter cannot be delivered; the message has the reason."""


@transaction.atomic
def post(channel: str, key: str, content: dict[str, Any], now: datetime | None = None) -> Letter:
    """Queue a letter; it replaces one with the same key, unless the content is the same."""
    now = now or timezone.now()
    letter, made = Letter.objects.select_for_update().get_or_create(
        channel=channel, key=key, defaults={"content": content, "due": now, "since": now}
    )
    if not made and letter.content != content:
        letter.content, letter.version, letter.since = content, letter.version + 1, now
        if letter.due is None:
            letter.due, letter.attempts = now, 0
        letter.save()
    return letter


def deliver(now: datetime | None = None) -> int:
    """Try all letters that are due, the oldest first; returns how many were delivered."""
    now = now or timezone.now()
    delivered: list[bool] = []

    def step(number: int) -> None:
        letter = _take(number, now)
        if letter is not None:
            delivered.append(_try(letter, now))

    due = list(Letter.objects.filter(_due(now)).values_list("pk", flat=True)[:AT_ONCE])
    faults.for_each(DELIVER, due, step, lambda number: f"message {number}")
    return sum(delivered)


@transaction.atomic
def retry(channel: str, now: datetime | None = None) -> int:
    """Make the waiting letters of a channel due now, with short pauses again; returns their number.

    A letter that is being sent is left out. At least one attempt stays counted, because its response may be lost.
    """
    now = now or timezone.now()
    waiting = Letter.objects.select_for_update().filter(channel=channel, due__isnull=False)
    keys = [letter.pk for letter in waiting if not _is_being_sent(letter, now)]
    return Letter.objects.filter(pk__in=keys).update(due=now, attempts=Least("attempts", 1))


def pause(attempts: int) -> timedelta:
    """The pause after a number of attempts: it doubles each time, up to the max."""
    return min(FIRST_PAUSE * (1 << min(attempts - 1, 10)), LONGEST_PAUSE)


def forget(now: datetime | None = None) -> int:
    """Delete the content of old letters; returns their number.

    Key and remote identifier are kept, so that nothing is sent twice and a comment can be edited.
    """
    old = (now or timezone.now()) - timedelta(days=settings.MESSAGES_KEPT_DAYS)
    return Letter.objects.filter(due=None, since__lt=old).exclude(content={}).update(content={})


def _due(now: datetime) -> Q:
    """Return the due letters; also untried ones with a future timestamp, because the clock may have been put back."""
    return Q(due__lte=now) | Q(due__isnull=False, attempts=0, since__gt=now)


def _is_being_sent(letter: Letter, now: datetime) -> bool:
    """Return whether an attempt has no outcome yet. After the time that a sender takes, its process has died."""
    if letter.due is None or letter.attempts == 0 or letter.problem:
        return False
    return now < letter.due - pause(letter.attempts) + FIRST_PAUSE


@transaction.atomic
def _take(number: int, now: datetime) -> Letter | None:
    """Claim a letter that is still due; other workers see a later time, at which it is retried after a crash."""
    letter = Letter.objects.select_for_update(skip_locked=True).filter(_due(now), pk=number).first()
    if letter is not None:
        letter.attempts += 1
        letter.due = now + pause(letter.attempts)
        letter.problem = ""
        letter.save(update_fields=["attempts", "due", "problem"])
    return letter


def _try(letter: Letter, now: datetime) -> bool:
    try:
        reference = plain(import_string(settings.OUTBOX_SENDERS[letter.channel.partition(":")[0]])(letter))[:500]
    except LaterError as error:
        _put_off(letter, now, error)
    except NeverError as error:
        _give_up(letter, str(error))
    except Exception as error:
        log.exception("%s: the sender has a bug", letter)
        _put_off(letter, now, LaterError(repr(error)))
    else:
        same = Letter.objects.filter(pk=letter.pk)
        same.update(reference=reference, sent=now, problem="")
        # If the content has changed meanwhile, the letter is due again.
        same.filter(version=letter.version).update(due=None, attempts=0)
        same.exclude(version=letter.version).update(due=now, attempts=0)
        return True
    return False


def _put_off(letter: Letter, now: datetime, error: LaterError) -> None:
    if now - letter.since > PATIENCE:
        _give_up(letter, f"no success in {PATIENCE.days} days: {error}")
        return
    log.warning("%s: attempt %d failed: %s", letter, letter.attempts, error)
    due = now + (error.pause or (AWAY if error.everything else pause(letter.attempts)))
    Letter.objects.filter(pk=letter.pk).update(due=due, problem=plain(str(error)))
    if error.everything:
        Letter.objects.filter(channel=letter.channel, due__lt=due).update(due=due)


def _give_up(letter: Letter, reason: str) -> None:
    log.error("%s: given up: %s", letter, reason)
    Letter.objects.filter(pk=letter.pk, version=letter.version).update(due=None, problem=plain(reason))
