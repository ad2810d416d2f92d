# SPDX-License-Identifier: BSD-2-Clause
"""What people are told of a confirmed change: a mail to who wants it, said anew when the commit is known."""

from __future__ import annotations

import textwrap

from django.conf import settings

from perfweb.outbox.services import post
from perfweb.tracking.confirming import in_words
from perfweb.tracking.models import Alert

WIDTH = 72
CHANNEL = "mail:smtp"


def tell(alert: Alert) -> None:
    """Have everybody told who wants to be: once that a change is confirmed, and once how bisecting it ended.

    A letter that has been sent is not sent again with the same content.
    """
    addresses = alert.branch.mail_to.split()
    if not addresses or not settings.MAIL_ADDRESS:
        return
    occasion = "ended" if alert.conclusion else "confirmed"
    content = {
        "occasion": f"alert {occasion}", "to": addresses, "cc": [], "subject": subject(alert),
        "in_reply_to": "", "references": "", "text": text(alert),
    }  # fmt: skip
    post(CHANNEL, f"alert.{alert.number}.{occasion}", content)


def subject(alert: Alert) -> str:
    """A line: what moved most, by how much, and with which commit."""
    sizes = [movement.size for movement in alert.movements.all() if movement.confirmed]
    most = max(sizes, key=abs, default=0.0)
    where = f"with {alert.culprit}" if alert.culprit else f"after {alert.since.short}"
    return f"[{alert.branch.name}] {most:+.1f} % {where}"[:150]


def text(alert: Alert) -> str:
    """A mail in plain text."""
    moved = [movement for movement in alert.movements.all() if movement.confirmed]
    where = f"The change came after\n  {alert.since}\nand with this commit or before:\n  {alert.until}"
    parts = [
        textwrap.fill(alert.conclusion, WIDTH) if alert.conclusion else where,
        "Measured in turn on both sides:\n" + "\n".join(f"  {in_words(movement)}" for movement in moved),
        "" if alert.conclusion else "It is being bisected; the result comes in another mail.",
        f"What became of it can be said here:\n  {alert.address}",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
