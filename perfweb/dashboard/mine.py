# SPDX-License-Identifier: BSD-2-Clause
"""A user's own page: patches, runs and alerts."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.accounts.guards import acts
from perfweb.accounts.models import User
from perfweb.accounts.permissions import Action
from perfweb.runs.models import Run
from perfweb.submissions.listing import listed, to_list
from perfweb.tracking import states
from perfweb.tracking.alerts import addresses
from perfweb.tracking.models import AddressKind, Alert
from perfweb.verdicts.run_verdicts import verdicts

MOST = 20
"""Max rows of each list, the newest."""


@require_safe
@acts(Action.SEE_ACCOUNT)
def mine(request: HttpRequest) -> HttpResponse:
    """Show a user the submitted patches, the other requested runs, the alerts that the user owns, and the watches."""
    user = cast("User", request.user)
    runs = Run.objects.select_related("plan", "testbed").prefetch_related("variants")
    webhook = addresses.of(user, AddressKind.WEBHOOK)
    requested = runs.filter(requested_by=user.username, submissions=None)
    context = {
        "owner": user,
        "patches": listed(list(to_list().filter(author=user)[:MOST])),
        "rows": verdicts(list(requested[:MOST])),
        "watches": user.watches.select_related("branch"),
        "address": addresses.of(user, AddressKind.MAIL),
        "webhook": webhook,
        "delivery": addresses.newest(webhook) if webhook else None,
        "alerts": Alert.objects.to_show().filter(owner=user, state__in=states.OPEN)[:MOST],
    }
    return render(request, "dashboard/mine.html", context)
