# SPDX-License-Identifier: BSD-2-Clause
"""What users watch, and the notifications that they get of it."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Q

from perfweb.accounts import audit
from perfweb.accounts.actors import Actor
from perfweb.accounts.models import User
from perfweb.accounts.permissions import Action
from perfweb.tracking.alerts import addresses
from perfweb.tracking.alerts.addresses import Message, WatchError
from perfweb.tracking.models import Alert, AlertAddress, Watch

MOST_WATCHES = 50


def watch(actor: Actor, wanted: Watch, *, active: bool) -> None:
    """Begin or end a watch, given as an unsaved one. Raises WatchError."""
    user = wanted.user
    same = Watch.objects.filter(user=user, branch=wanted.branch, test=wanted.test, alert=wanted.alert)
    with audit.action(actor, Action.WATCH, str(wanted), "" if active else "no more"):
        if not active:
            same.delete()
        elif not same.exists():
            User.objects.select_for_update().get(pk=user.pk)  # so that two requests cannot exceed the limit
            if user.watches.count() >= MOST_WATCHES:
                raise WatchError(f"You watch {MOST_WATCHES} things, which is the max: end a watch first.")
            wanted.save()


def notify(alert: Alert, message: Message, *, except_for: Collection[str] = (), by: str = "") -> None:
    """Notify each user who watches an alert, its branch or one of its tests; `by` is the user who caused it.

    An update by a user goes only to users that watch the alert itself.
    """
    tests = alert.movements.filter(confirmed=True).values("test")
    watched = Q(alert=alert) if by else Q(alert=alert) | Q(branch=alert.branch) | Q(test__in=tests)
    users = Watch.objects.filter(watched).exclude(user__username=by).values("user")
    found = AlertAddress.objects.filter(user__in=users, user__is_active=True, confirmed__isnull=False)
    for row in found.exclude(address__in=except_for).select_related("user"):
        addresses.send(row, message)
