# SPDX-License-Identifier: BSD-2-Clause
"""Cleans up after workers that died: says so in their runs, restores their testbeds, saves what they had measured."""

import logging

from django.db import transaction
from django.utils import timezone

from perfweb.lab import services as lab
from perfweb.lab.models import Lease
from perfweb.runs import states
from perfweb.runs.models import Boot, BootState, Run
from runners import record, spool
from runners.driver import PlayError
from runners.plays import Plays

log = logging.getLogger(__name__)


def recover() -> None:
    """Ends every run whose lease has expired.

    A testbed that cannot be restored stays leased and is tried again, unless `manage.py free` gives it up.
    """
    expired = Lease.objects.filter(released__isnull=True, expires__lt=timezone.now())
    for lease in expired.select_related("testbed"):
        run = Run.objects.filter(lease=lease).select_related("testbed").first()
        if run is None:
            lab.release(lease)
        elif _interrupt(run.number, lease):
            _clean_up(run, lease)


@transaction.atomic
def _interrupt(number: int, lease: Lease) -> bool:
    """Interrupts the run unless it came back to life; returns whether its testbed is to be cleaned."""
    run = Run.objects.select_for_update().get(number=number)
    lease.refresh_from_db()
    if lease.released is not None or lease.expires >= timezone.now():
        return False
    if run.state in states.ACTIVE:
        states.interrupt(number, "the worker gave no sign of life; `manage.py resume` does what is missing")
    for boot in Boot.objects.filter(run=run, state__in=[BootState.BOOTING, BootState.UP]):
        record.boot_ended(boot, BootState.INTERRUPTED, "the worker died")
    return True


def _clean_up(run: Run, lease: Lease) -> None:
    replay_spool(run)
    try:
        Plays(run).restore()
    except (PlayError, FileNotFoundError) as error:
        log.warning("testbed %s stays leased, for it cannot be restored: %s", run.testbed, error)
        return
    lab.release(lease)


def replay_spool(run: Run) -> None:
    """Brings into the database what `run` had measured when its worker or the database died."""
    for path, document in spool.waiting(run):
        record.measurement(document)
        spool.remove(path)
        log.info("%s: saved %s from the spool", run, document["test"])
