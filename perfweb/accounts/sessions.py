# SPDX-License-Identifier: BSD-2-Clause
"""Sessions that an external account opened: they end when it is unlinked."""

from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from perfweb.accounts.models import Identity

_KEY = "identity"


def open_by(request: HttpRequest, identity: Identity) -> None:
    """Record the external account with which a session was opened."""
    request.session[_KEY] = identity.pk


def end_of(identity: Identity) -> None:
    """End all sessions that an external account opened."""
    alive = Session.objects.filter(expire_date__gt=timezone.now())
    opened = [session.pk for session in alive.iterator() if session.get_decoded().get(_KEY) == identity.pk]
    Session.objects.filter(pk__in=opened).delete()
