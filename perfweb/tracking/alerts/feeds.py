# SPDX-License-Identifier: BSD-2-Clause
"""Atom feeds (RFC 4287) of alerts, for users who follow a branch, a test or one alert."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape
from django.views.decorators.http import require_safe

from perfweb.parameters import choice_in
from perfweb.runs.catalogue import TESTS
from perfweb.tracking.alerts.notifications import subject, text
from perfweb.tracking.models import Alert, AlertState, AlertStep, TrackedBranch
from perfweb.tracking.views import alert_of_page

NEWEST = 50
"""Max entries of a feed."""


@dataclass(frozen=True)
class Entry:
    """An entry of a feed; its page identifies it for ever."""

    title: str
    page: str
    text: str
    created: datetime
    changed: datetime


@require_safe
def alerts(request: HttpRequest) -> HttpResponse:
    """Return confirmed alerts, the newest first; `?branch=` and `?test=` choose those of a branch or a test. Only the
    feed of a branch of samples has theirs.
    """
    branch = choice_in(request, "branch", TrackedBranch.objects.values_list("name", flat=True))
    test = choice_in(request, "test", TESTS)
    found = Alert.objects.filter(branch__name=branch) if branch else Alert.objects.real()
    found = found.to_show().exclude(state__in=(AlertState.NEW, AlertState.REFUTED))
    if test:
        found = found.filter(movements__test=test, movements__confirmed=True).distinct()
    title = " ".join(["Alerts", *(f"of {name}" for name in (branch, test) if name)])
    entries = [
        Entry(subject(alert), alert.address, text(alert), alert.created, _changed(alert))
        for alert in found.prefetch_related("steps")[:NEWEST]
    ]
    return _feed(request, title, reverse("tracking:alerts"), entries)


@require_safe
def alert(request: HttpRequest, number: int) -> HttpResponse:
    """Return the history of an alert: its states and comments, the newest first."""
    found = alert_of_page(number)
    entries = [
        Entry(_title(step), f"{found.address}#step-{step.pk}", step.text, step.at, step.at)
        for step in found.steps.order_by("-pk")[:NEWEST]
    ]
    return _feed(request, f"Alert {number}", reverse("tracking:alert", args=[number]), entries)


def _changed(alert: Alert) -> datetime:
    return max((step.at for step in alert.steps.all()), default=alert.created)


def _title(step: AlertStep) -> str:
    words = step.get_to_state_display() if step.to_state else "comment"
    return f"Alert {step.alert_id}: {words} ({step.who})"


def _feed(request: HttpRequest, title: str, page: str, entries: Iterable[Entry]) -> HttpResponse:
    """Return a feed; `page` is the path of the page with the same contents."""
    own = settings.SITE_URL + request.get_full_path()
    feed = Atom1Feed(f"perfweb: {title}", settings.SITE_URL + page, "", feed_url=own, feed_guid=own, language="en")
    for entry in entries:
        words = f"<pre>{escape(entry.text)}</pre>"
        feed.add_item(
            entry.title, entry.page, words, pubdate=entry.created, unique_id=entry.page, updateddate=entry.changed
        )
    return HttpResponse(feed.writeString("utf-8"), content_type=feed.content_type)
