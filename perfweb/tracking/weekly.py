# SPDX-License-Identifier: BSD-2-Clause
"""A weekly mail to the recipients of a branch's alerts: changes, open alerts, measured commits."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.urls import reverse

from perfweb.faults import services as faults
from perfweb.outbox.models import Letter
from perfweb.outbox.services import post
from perfweb.tracking import periods
from perfweb.tracking.alerts.addresses import MAIL
from perfweb.tracking.models import Alert, TrackedBranch
from perfweb.tracking.standings import Standing
from perfweb.verdicts.numbers import THIN_SPACE
from perfweb.verdicts.wording import change_words

WEEK = timedelta(days=7)
REPORT = faults.Task("weekly report", "it is tried again for a day; read the messenger's log")
LATEST = timedelta(days=1)
"""Max delay of a report after an outage of the service; a quiet week gets none for later events."""
HOUR = 6
"""Monday, UTC, at an hour before the working day."""
ROWS = 20


def report(branch: TrackedBranch, now: datetime) -> None:
    """Post the report of the week that ended last Monday, unless that was done, or it would be empty."""
    addresses = branch.mail_to.split()
    if not addresses or not settings.MAIL_ADDRESS:
        return
    end = last_monday(now)
    key = f"week.{branch.pk}.{end:%Y-%m-%d}"
    if now - end > LATEST or end < branch.created or Letter.objects.filter(channel=MAIL, key=key).exists():
        return
    if body := text(branch, end):
        content = {
            "occasion": "weekly report", "to": addresses, "cc": [],
            "subject": f"[{branch.name}] week to {end:%Y-%m-%d}", "in_reply_to": "", "references": "", "text": body,
        }  # fmt: skip
        post(MAIL, key, content)


def last_monday(now: datetime) -> datetime:
    """Return the end of the last complete week."""
    morning = now.replace(hour=HOUR, minute=0, second=0, microsecond=0) - timedelta(days=now.weekday())
    return morning if morning <= now else morning - WEEK


def text(branch: TrackedBranch, end: datetime) -> str:
    """Return the report as plain text; empty without new commits and open alerts."""
    listed = branch.commits.filter(position__isnull=False, committed__lt=end).order_by("-position")
    last, first = listed.first(), listed.filter(committed__lt=end - WEEK).first() or listed.last()
    waiting = list(periods.open_alerts(branch).filter(created__lt=end))
    parts = []
    if last is not None and first is not None and last != first:
        parts += _happened(periods.between(branch, first, last))
    if waiting:
        parts.append("Alerts without an outcome:\n" + _lines(waiting))
    if not parts:
        return ""
    page = f"{settings.SITE_URL}{reverse('tracking:branch', args=[branch.name])}"
    return "\n\n".join([f"{branch.name} on {branch.testbed.label}", *parts, f"All of it:\n  {page}"]) + "\n"


def _happened(period: periods.Period) -> list[str]:
    """Return the new commits, and the movements that they caused."""
    commits = f"{period.commits} commit{'s' if period.commits != 1 else ''}"
    parts = [f"{commits} after {period.first.short}, up to {period.last.short}; {period.measured} measured."]
    if period.standings:
        rows = [f"  {row.test} on {row.variant}\n    {_moved(row)}" for row in period.standings[:ROWS]]
        more = len(period.standings) - ROWS
        rows += [f"  and {more} more"] if more > 0 else []
        parts.append("Changes, from confirmed alerts and change points:\n" + "\n".join(rows))
    else:
        parts.append("No test changed.")
    if period.alerts:
        parts.append("Alerts of the week:\n" + _lines(period.alerts))
    return parts


def _moved(row: Standing) -> str:
    change = f"{change_words(row.change).replace(THIN_SPACE, ' ')}  " if row.change else ""
    return f"{change}{'; '.join([row.words, *row.cautions])}"


def _lines(alerts: list[Alert]) -> str:
    return "\n".join(_line(alert) for alert in alerts)


def _line(alert: Alert) -> str:
    where = f"with {alert.culprit}" if alert.culprit else f"after {alert.since.short}"
    owner = f", {alert.owner.get_username()}" if alert.owner else ""
    due = f", due {alert.due}" if alert.due else ""
    return f"  {alert.number}: {alert.get_state_display()}{owner}{due}; {where}\n    {alert.address}"
