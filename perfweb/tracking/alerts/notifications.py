# SPDX-License-Identifier: BSD-2-Clause
"""Notifications of a confirmed change: a mail to subscribers, JSON for a program, and an issue on a forge."""

from __future__ import annotations

import textwrap
from typing import Any

from django.conf import settings

from perfweb.builds.models import Mirror
from perfweb.forges.comments import mark
from perfweb.forges.markdown import code, table
from perfweb.forges.models import Project
from perfweb.forges.sending import channel as forge_channel
from perfweb.forges.table import FORGES
from perfweb.lab.origins import Origin
from perfweb.outbox import hooks
from perfweb.outbox.models import Letter
from perfweb.outbox.services import post
from perfweb.tracking import states
from perfweb.tracking.alerts import addresses, watching
from perfweb.tracking.alerts.addresses import Message
from perfweb.tracking.alerts.confirming import in_words
from perfweb.tracking.models import Alert, AlertState, AlertStep, TrackedCommit
from perfweb.verdicts.numbers import LARGE_PERCENT, factor
from perfweb.verdicts.wording import change_words

WIDTH = 72


def notify(alert: Alert) -> None:
    """Notify all recipients: once when a change is confirmed, and once when its bisection ends.

    A letter that has been sent is not sent again with the same content.
    """
    occasion = "ended" if alert.conclusion else "confirmed"
    key = f"alert.{alert.number}.{occasion}"
    recipients = alert.branch.mail_to.split()
    if recipients and settings.MAIL_ADDRESS:
        content = {
            "occasion": f"alert {occasion}", "to": recipients, "cc": [], "subject": subject(alert),
            "in_reply_to": "", "references": "", "text": text(alert),
        }  # fmt: skip
        post(addresses.MAIL, key, content)
    if alert.branch.hook:
        post(hooks.CHANNEL, key, {"url": alert.branch.hook, "data": data(alert, occasion)})
    message = Message(key, subject(alert), text(alert), data(alert, occasion))
    watching.notify(alert, message, except_for=[*recipients, alert.branch.hook])
    issue(alert)


def issue(alert: Alert) -> None:
    """Update the one issue of a confirmed change: created, edited, and closed with its alert."""
    project = project_of(alert.branch.mirror)
    if not alert.branch.issues or project is None or alert.state in {AlertState.NEW, AlertState.REFUTED}:
        return
    content = {
        "what": "issue", "title": subject(alert), "body": issue_text(alert),
        "mark": mark(f"alert {alert.number}"), "state": _turn(alert),
    }  # fmt: skip
    post(*_issue_letter(project, alert), content)


def issue_of(alert: Alert) -> tuple[str, str] | None:
    """Return the name and the address of an alert's issue, None if there is none yet."""
    project = project_of(alert.branch.mirror)
    if project is None:
        return None
    channel, key = _issue_letter(project, alert)
    number = Letter.objects.filter(channel=channel, key=key).values_list("reference", flat=True).first()
    if not number:
        return None
    return f"issue {number} of {project.path}", FORGES[project.forge].issue_page(project.api, project.path, number)


def commit_page(mirror: Mirror | None, commit: TrackedCommit | None) -> str:
    """Return where the forge shows a commit with its changes, an empty text if its repository is on none."""
    project = project_of(mirror) if commit else None
    if project is None or commit is None:
        return ""
    return FORGES[project.forge].commit_page(project.api, project.path, commit.sha)


def project_of(mirror: Mirror | None) -> Project | None:
    """Return the project on a forge of a repository."""
    return Project.named(mirror.name) if mirror else None


def issue_text(alert: Alert) -> str:
    """Return the issue in Markdown; untrusted text is in code."""
    rows = [
        [code(movement.test), code(movement.variant), change_words(movement.change),
         "faster" if movement.better else "slower"]
        for movement in alert.movements.all() if movement.confirmed
    ]  # fmt: skip
    owner = code(alert.owner.username) if alert.owner else "nobody"
    due = f", due {alert.due}" if alert.due else ""
    page = f"[alert {alert.number}]({alert.address})"
    parts = [
        _where(alert),
        table(["test", "variant", "change, measured in turn", ""], rows),
        f"State: {alert.get_state_display()}; owner: {owner}{due}.",
        f"Runs and other differences are on the page of {page}. Set the outcome there.",
        mark(f"alert {alert.number}"),
    ]
    return "\n\n".join(parts)


def _where(alert: Alert) -> str:
    """Return the culprit, or the range of commits."""
    if alert.culprit:
        likely = f" (probability {alert.probability:.2f})" if alert.probability is not None else ""
        return f"Since {alert.culprit.sha}{likely}: {code(alert.culprit.subject)}"
    ends = f"After {alert.since.sha}, with {alert.until.sha} or before."
    return f"{ends} {'It was bisected as far as it goes.' if alert.conclusion else 'It is being bisected.'}"


def _turn(alert: Alert) -> str:
    """Return whether an issue is open: it is closed and opened with its alert; else it stays as users left it."""
    if alert.state not in states.OPEN:
        return "closed"
    return "open" if alert.steps.filter(from_state__in=set(AlertState) - states.OPEN).exists() else ""


def _issue_letter(project: Project, alert: Alert) -> tuple[str, str]:
    """Return the channel and the key of the letter with an alert's issue."""
    return forge_channel(project), f"alert {alert.number}"


def updated(alert: Alert, step: AlertStep) -> None:
    """Notify the users who watch this alert of an update by another user."""
    words = f"State: {step.get_to_state_display()}" if step.to_state else "Comment"
    parts = [f"{words} ({step.who})", step.text, alert.address]
    values = {
        "occasion": "updated", "alert": alert.number, "address": alert.address, "branch": alert.branch.name,
        "state": alert.state, "who": step.who, "text": step.text,
    }  # fmt: skip
    name, mail = f"alert.{alert.number}.step.{step.pk}", "\n\n".join(filter(None, parts))
    watching.notify(alert, Message(name, f"Re: {subject(alert)}", mail, values), by=step.who)


def data(alert: Alert, occasion: str) -> dict[str, Any]:
    """Return the JSON of the hook: numbers are in percent, commits are hashes."""
    return {
        "occasion": occasion,
        "alert": alert.number,
        "address": alert.address,
        "branch": alert.branch.name,
        "testbed": alert.branch.testbed.name,
        "origin": alert.branch.testbed.origin,
        "simulated": alert.branch.testbed.origin == Origin.SIMULATED,
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
    """Return one line: the largest movement, its size, the origin of its results, and its commit."""
    sizes = [movement.size for movement in alert.movements.all() if movement.confirmed]
    most = max(sizes, key=abs, default=0.0)
    where = f"with {alert.culprit}" if alert.culprit else f"after {alert.since.short}"
    size = factor(most) if most >= LARGE_PERCENT else f"{most:+.1f} %"
    return f"[{alert.branch.name}] {size}{Origin(alert.branch.testbed.origin).in_brackets} {where}"[:150]


def text(alert: Alert) -> str:
    """Return a mail in plain text, with the mark of results that were not measured."""
    moved = [movement for movement in alert.movements.all() if movement.confirmed]
    where = f"The change came after\n  {alert.since}\nand with this commit or before:\n  {alert.until}"
    parts = [
        textwrap.fill(alert.conclusion, WIDTH) if alert.conclusion else where,
        "Measured in turn on both sides:\n" + "\n".join(f"  {in_words(movement)}" for movement in moved),
        "" if alert.conclusion else "The bisection has started. Another mail will have its result.",
        f"Testbed: {alert.branch.testbed.label}",
        f"Set the outcome here:\n  {alert.address}",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"
