# SPDX-License-Identifier: BSD-2-Clause
"""Sessions that an external account opened: they end when it is unlinked."""

from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from perfweb.accounts.models import Identity

_KEY = "identity"


@transaction.atomic
def open_by(request: HttpRequest, identity: Identity) -> bool:
    """Save a session with the external account that opened it; return False if the account was unlinked meanwhile.

    The lock of the account makes unlink() wait, so that it finds this session.
    """
    if not Identity.objects.select_for_update().filter(pk=identity.pk).exists():
        return False
    request.session[_KEY] = identity.pk
    request.session.save()
    return True


@transaction.atomic
def unlink(identity: Identity) -> None:
    """Delete an external account, then end all sessions that it opened."""
    key = identity.pk
    identity.delete()
    alive = Session.objects.filter(expire_date__gt=timezone.now())
    opened = [session.pk for session in alive.iterator() if session.get_decoded().get(_KEY) == key]
    Session.objects.filter(pk__in=opened).delete()
