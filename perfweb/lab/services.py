# SPDX-License-Identifier: BSD-2-Clause
"""Registering testbeds, and leasing them to one holder at a time.

Leases expire by the clock of the database only: the clocks of the machines that share it may differ, and jump.
"""

import re
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.utils import timezone

from perfweb.lab import outages
from perfweb.lab.inventory import InventoryError, origin_of, read_inventory
from perfweb.lab.models import Host, Lease, Role, Testbed
from perfweb.lab.origins import Origin


@transaction.atomic
def register(name: str, inventory: Path, lab: str = "") -> Testbed:
    """Makes or updates the testbed `name` from an Ansible inventory; the worker of `lab` drives it, or the service's
    own. Raises InventoryError.

    The inventory also has the words that plans may add to the command line of dut's kernel.

    A testbed that simulates or counts, whose inventory has only dut, never becomes one that measures, nor the reverse.
    """
    if re.fullmatch(r"[A-Za-z0-9_-]{1,50}", name, re.ASCII) is None:
        raise InventoryError(f"{name!r} is no name for a testbed: use 1 to 50 letters, digits, - and _")
    if re.fullmatch(r"[a-z0-9-]{0,32}", lab, re.ASCII) is None:
        raise InventoryError(f"{lab!r} is no name for a lab: use up to 32 small letters, digits and -")
    if Testbed.objects.filter(name=name).exclude(sample="").exists():
        raise InventoryError(f"the testbed {name} holds samples, which measure nothing: use another name")
    hosts = read_inventory(inventory)
    origin = origin_of(hosts)
    if other := Testbed.objects.filter(name=name).exclude(origin=origin).first():
        raise InventoryError(
            f"testbed {name} {Origin(other.origin).verb}s, and {inventory} is of one that {origin.verb}s: "
            "results of both have no place in one series; use another name"
        )
    words = hosts[Role.DUT].command_line_words
    about: dict[str, object] = {"inventory": str(inventory.resolve()), "origin": origin, "lab": lab}
    about["command_line_words"] = None if words is None else list(words)
    testbed, _ = Testbed.objects.update_or_create(name=name, defaults=about)
    for role, host in hosts.items():
        Host.objects.update_or_create(testbed=testbed, role=role, defaults={"name": host.name, "address": host.address})
    return testbed


def labs() -> list[str]:
    """The labs that have workers of their own, by name."""
    return sorted(Testbed.objects.exclude(lab="").values_list("lab", flat=True).distinct())


def imported_testbed(name: str, origin: Origin) -> Testbed:
    """Returns the testbed `name`; makes it without hosts if there is none, for imported results of this origin."""
    testbed, _ = Testbed.objects.get_or_create(name=name, defaults={"origin": origin})
    return testbed


@transaction.atomic
def acquire(testbed: Testbed, holder: str, worker: str = "", account: str = "") -> Lease | None:
    """Returns a lease of the whole `testbed` for `holder`, or None if it is leased, being leased, or out of service.

    An expired lease counts as held until the testbed is reported clean (`release`), because processes and files of the
    holder may still be there.
    """
    # Two workers that want it do not wait for each other: the second gives up at once. NO KEY, because a new run of the
    # testbed locks its key, which is no reason to give up.
    wanted = Testbed.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=testbed.pk)
    # A second statement after the lock sees what was committed before it.
    if not wanted.exists() or Testbed.objects.filter(outages.unavailable(), pk=testbed.pk).exists():
        return None
    made = Lease.objects.create(testbed=testbed, holder=holder, worker=worker, account=account, expires=_deadline())
    made.refresh_from_db()
    return made


def renew(lease_id: int) -> Lease | None:
    """Renews the lease as the holder's heartbeat; returns None if the holder has lost it."""
    renewed = Lease.objects.filter(pk=lease_id, released__isnull=True).update(expires=_deadline())
    return Lease.objects.get(pk=lease_id) if renewed else None


def expired() -> QuerySet[Lease]:
    """The expired leases that were not released."""
    return Lease.objects.filter(released__isnull=True, expires__lt=Now())


def renew_all() -> int:
    """Renews every lease, after the clock of the database has jumped; returns their number."""
    return Lease.objects.filter(released__isnull=True, problem="").update(expires=_deadline())


def release(lease: Lease) -> None:
    """Releases the testbed; releasing twice is no error."""
    Lease.objects.filter(pk=lease.pk, released__isnull=True).update(released=timezone.now())


def quarantine(lease: Lease, problem: str) -> None:
    """Keeps the testbed out of service until the lease is released, because its hosts could not be restored."""
    if lease.problem != problem:
        lease.problem = problem
        lease.save(update_fields=["problem"])


def recall(worker: str) -> int:
    """Requests that all holders that `worker` works for release their testbeds; returns the number of requests."""
    return Lease.objects.filter(worker=worker, released__isnull=True).update(recalled=True)


def _deadline() -> CombinedExpression:
    return Now() + timedelta(seconds=settings.LEASE_SECONDS)
