# SPDX-License-Identifier: BSD-2-Clause
"""Posting letters and delivering them: nothing is lost while the other side is down, and nothing is said too often.

A sender is called again after a crash in its midst, so it looks for what it may have said before.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.module_loading import import_string

from perfweb.faults import services as faults
from perfweb.outbox.models import Letter
from perfweb.plaintext import plain

log = logging.getLogger(__name__)

FIRST_PAUSE = timedelta(seconds=60)
"""Longer than a sender takes: the letter is not tried twice at the same time."""
LONGEST_PAUSE = timedelta(hours=1)
PATIENCE = timedelta(days=14)
"""How long a letter is tried."""
AT_ONCE = 50
DELIVER = faults.Task("deliver", "it is tried again after a pause; look at the messenger's log")


class LaterError(Exception):
    """It could not be said now. `pause` is how long the other side wants to be left alone; `everything` is so if that
    concerns all of the channel and not only this letter.
    """

    def __init__(self, reason: str, pause: timedelta | None = None, *, everything: bool = False) -> None:
        super().__init__(reason)
        self.pause, self.everything = pause, everything


class NeverError(Exception):
    """It cannot be said; the message says why."""


@transaction.atomic
def post(channel: str, key: str, content: dict[str, Any], now: datetime | None = None) -> Letter:
    """Have something said, soon; what was said under the same key is replaced, and with the same content left alone."""
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


def pause(attempts: int) -> timedelta:
    """How long to wait after so many attempts: twice as long each time, up to the longest."""
    return min(FIRST_PAUSE * (1 << min(attempts - 1, 10)), LONGEST_PAUSE)


def forget(now: datetime | None = None) -> int:
    """Forget what was said long ago; returns of how many letters.

    That it was said is kept, and how the other side calls it: nothing is said twice, and a comment can be edited.
    """
    old = (now or timezone.now()) - timedelta(days=settings.MESSAGES_KEPT_DAYS)
    return Letter.objects.filter(due=None, since__lt=old).exclude(content={}).update(content={})


def _due(now: datetime) -> Q:
    """Which letters are to be tried: also one of the future that was never tried, since the clock was put back."""
    return Q(due__lte=now) | Q(due__isnull=False, attempts=0, since__gt=now)


@transaction.atomic
def _take(number: int, now: datetime) -> Letter | None:
    """Take a letter that is still due; whoever else looks sees that it is tried later, as it is if we crash."""
    letter = Letter.objects.select_for_update(skip_locked=True).filter(_due(now), pk=number).first()
    if letter is not None:
        letter.attempts += 1
        letter.due = now + pause(letter.attempts)
        letter.save(update_fields=["attempts", "due"])
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
        # Where the content has changed meanwhile there is more to say.
        same.filter(version=letter.version).update(due=None, attempts=0)
        same.exclude(version=letter.version).update(due=now, attempts=0)
        return True
    return False


def _put_off(letter: Letter, now: datetime, error: LaterError) -> None:
    if now - letter.since > PATIENCE:
        _give_up(letter, f"for {PATIENCE.days} days in vain: {error}")
        return
    log.warning("%s: attempt %d in vain: %s", letter, letter.attempts, error)
    due = max(letter.due or now, now + (error.pause or timedelta()))
    Letter.objects.filter(pk=letter.pk).update(due=due, problem=plain(str(error)))
    if error.everything:
        Letter.objects.filter(channel=letter.channel, due__lt=due).update(due=due)


def _give_up(letter: Letter, reason: str) -> None:
    log.error("%s: given up: %s", letter, reason)
    Letter.objects.filter(pk=letter.pk, version=letter.version).update(due=None, problem=plain(reason))
