# SPDX-License-Identifier: BSD-2-Clause
"""Testbeds out of service: in maintenance, set by a user, or in quarantine, after repeated faults.

Either keeps new runs waiting, but does not interrupt a run on the testbed. Faults of a testbed are a health check with
a problem and a failed play `prepare`. A prepared run resets the count of faults.
"""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from perfweb.lab.models import HealthCheck, Lease, Outage, OutageKind, Testbed


class OutageError(ValueError):
    """The testbed is already out of service, or is in service; the message names the state."""


@transaction.atomic
def begin(testbed: Testbed, kind: OutageKind, why: str, by: str) -> Outage:
    """Takes a testbed out of service. Raises OutageError if it already is, for this kind of reason."""
    Testbed.objects.select_for_update(no_key=True).get(pk=testbed.pk)
    if not why.strip():
        raise OutageError("say why")
    if known := Outage.objects.filter(testbed=testbed, kind=kind, ended__isnull=True).first():
        raise OutageError(f"testbed {testbed} is in {known} already")
    return Outage.objects.create(testbed=testbed, kind=kind, why=why.strip(), by=by)


@transaction.atomic
def end(testbed: Testbed, by: str) -> list[Outage]:
    """Puts a testbed back into service and resets its faults; returns the ended outages. Raises OutageError."""
    Testbed.objects.select_for_update(no_key=True).get(pk=testbed.pk)
    current = list(Outage.objects.filter(testbed=testbed, ended__isnull=True))
    if not current:
        raise OutageError(f"testbed {testbed} is neither in maintenance nor in quarantine")
    Outage.objects.filter(pk__in=[outage.pk for outage in current]).update(ended=timezone.now(), ended_by=by)
    Testbed.objects.filter(pk=testbed.pk).update(faults=0)
    return current


@transaction.atomic
def failed(testbed: Testbed, why: str) -> None:
    """Counts a fault of the testbed; after QUARANTINE_FAULTS faults in a row it goes into quarantine."""
    Testbed.objects.filter(pk=testbed.pk).update(faults=F("faults") + 1)
    testbed.refresh_from_db()
    current = Outage.objects.filter(testbed=testbed, ended__isnull=True, kind=OutageKind.QUARANTINE)
    if testbed.faults >= settings.QUARANTINE_FAULTS and not current.exists():
        begin(testbed, OutageKind.QUARANTINE, f"{testbed.faults} faults in a row; the last: {why}", "perfweb")


def worked(testbed: Testbed) -> None:
    """Resets the faults, because a run was prepared on the testbed."""
    Testbed.objects.filter(pk=testbed.pk).exclude(faults=0).update(faults=0)


def checked(testbed: Testbed, holder: str, facts: dict[str, object], problems: list[str]) -> HealthCheck:
    """Stores the result of a health check: facts by host, and problems in words."""
    return HealthCheck.objects.create(testbed=testbed, holder=holder, facts=facts, problems=problems)


def unavailable() -> Q:
    """Testbeds that take no runs now: leased, out of service, or found unfit less than a pause ago.

    A check with a future timestamp was made before the clock was put back, and counts as an old one.
    """
    now = timezone.now()
    lately = now - timedelta(seconds=settings.UNFIT_SECONDS)
    return (
        Q(pk__in=Lease.objects.filter(released__isnull=True).values("testbed"))
        | Q(pk__in=Outage.objects.filter(ended__isnull=True).values("testbed"))
        | Q(pk__in=HealthCheck.objects.filter(at__gt=lately, at__lte=now).exclude(problems=[]).values("testbed"))
    )
