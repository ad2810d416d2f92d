# SPDX-License-Identifier: BSD-2-Clause
"""The only way to change something for a user: with permission, within the limits, and with a line in the log."""

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
class AuditRecord:
    """The line of the audit log; the action may set the subject at its end."""

    subject: str = ""
    detail: str = ""


@contextmanager
def action(actor: Actor, kind: Action, subject: str = "", detail: str = "") -> Iterator[AuditRecord]:
    """Run the block in one transaction with its line in the log, so that neither is kept without the other.

    Raises NotAllowedError, which is logged, too, or limits.NotNowError.
    """
    if actor.means != Means.COMMAND:
        limits.write(actor.name, actor.address)
    if not may(actor, kind):
        record(actor, kind, subject, detail, Outcome.REFUSED)
        raise NotAllowedError(kind)
    with transaction.atomic():
        entry = AuditRecord(subject, detail)
        yield entry
        record(actor, kind, entry.subject, entry.detail)


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
