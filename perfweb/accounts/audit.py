# SPDX-License-Identifier: BSD-2-Clause
"""The one way to change something for somebody: with permission, not too often, and with a line in the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import transaction

from perfweb.accounts import limits
from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Entry, Means, Outcome
from perfweb.accounts.permissions import Action, NotAllowedError, may
from perfweb.plaintext import plain


@dataclass
class Deed:
    """What is being done; its subject may be known only when it is done."""

    subject: str = ""
    detail: str = ""


@contextmanager
def doing(actor: Actor, action: Action, subject: str = "", detail: str = "") -> Iterator[Deed]:
    """Do something in one transaction with its line in the log, so that there is no one without the other.

    Raises NotAllowedError, which is in the log, too, or limits.NotNowError.
    """
    if actor.means != Means.COMMAND:
        limits.write(actor.name, actor.address)
    if not may(actor, action):
        record(actor, action, subject, detail, Outcome.REFUSED)
        raise NotAllowedError(action)
    with transaction.atomic():
        deed = Deed(subject, detail)
        yield deed
        record(actor, action, deed.subject, deed.detail)


def record(actor: Actor, action: Action, subject: str = "", detail: str = "", outcome: Outcome = Outcome.DONE) -> Entry:
    """Write a line of the log."""
    return Entry.objects.create(
        user=actor.user,
        who=actor.name,
        means=actor.means,
        token=actor.token.name if actor.token else "",
        address=actor.address,
        action=action,
        subject=plain(subject)[: Entry._meta.get_field("subject").max_length],
        detail=plain(detail),
        outcome=outcome,
    )
