# SPDX-License-Identifier: BSD-2-Clause
"""What people are told of a confirmed change: a mail to who wants it, and JSON for a program."""

from __future__ import annotations

import textwrap
from typing import Any

from django.conf import settings

from perfweb.outbox import hooks
from perfweb.outbox.services import post
from perfweb.tracking.confirming import in_words
from perfweb.tracking.models import Alert

WIDTH = 72
MAIL = "mail:smtp"


def tell(alert: Alert) -> None:
    """Have everybody told who wants to be: once that a change is confirmed, and once how bisecting it ended.

    A letter that has been sent is not sent again with the same content.
    """
    occasion = "ended" if alert.conclusion else "confirmed"
    key = f"alert.{alert.number}.{occasion}"
    addresses = alert.branch.mail_to.split()
    if addresses and settings.MAIL_ADDRESS:
        content = {
            "occasion": f"alert {occasion}", "to": addresses, "cc": [], "subject": subject(alert),
            "in_reply_to": "", "references": "", "text": text(alert),
        }  # fmt: skip
        post(MAIL, key, content)
    if alert.branch.hook:
        post(hooks.CHANNEL, key, {"url": alert.branch.hook, "data": data(alert, occasion)})


def data(alert: Alert, occasion: str) -> dict[str, Any]:
    """What a program is told: numbers are in percent, commits are hashes."""
    return {
        "occasion": occasion,
        "alert": alert.number,
        "address": alert.address,
        "branch": alert.branch.name,
        "testbed": alert.branch.testbed.name,
        "simulated": alert.branch.testbed.simulated,
        "since": alert.since.sha,
        "until": alert.until.sha,
        "commit": alert.culprit.sha if alert.culprit else None,
        "probability": alert.probability,
        "conclusion": alert.conclusion,
        "movements": [
            {"test": row.test, "variant": row.variant, "percent": row.percent, "low": row.low, "high": row.high,
             "better": row.better}
            for row in alert.movements.all() if row.confirmed
        ],
    }  # fmt: skip


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
