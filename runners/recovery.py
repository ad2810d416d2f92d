# SPDX-License-Identifier: BSD-2-Clause
"""Cleans up after workers that died: says so in their runs, restores their testbeds, saves what they had measured.

Testbeds that a run could not restore at its end are restored here, too, as soon as that works again.
"""

import logging
from pathlib import Path

from django.core.exceptions import ObjectDoesNotExist
from django.db import DataError, IntegrityError, transaction

from perfweb import logs
from perfweb.lab import services as lab
from perfweb.lab.models import Lease
from perfweb.plaintext import plain
from perfweb.runs import states
from perfweb.runs.models import Boot, BootState, Run
from runners import losses, record, spool
from runners.driver import PlayError
from runners.plays import Plays

log = logging.getLogger(__name__)
UNRESTORED = "the lab could not be restored"
NOT_STORABLE = (KeyError, TypeError, ValueError, ObjectDoesNotExist, DataError, IntegrityError)
"""What is wrong with a document, or with a boot that is gone: trying again does not help."""


def recover(name: str = "") -> None:
    """Ends every run of the lab `name` whose lease has expired, cleans its testbed, and queues it again
    (runners.losses).  Only the lab's own controller reaches its hosts, and has what its workers had measured.

    A testbed that cannot be restored stays out of service and is tried again, unless `manage.py free` gives it up.
    """
    for lease in lab.expired().filter(testbed__lab=name).select_related("testbed"):
        run = Run.objects.filter(lease=lease).select_related("testbed").first()
        if run is None:
            lab.release(lease)
            continue
        with logs.about(run=run.number):
            if _interrupt(run.number, lease):
                _clean_up(run, lease)


@transaction.atomic
def _interrupt(number: int, lease: Lease) -> bool:
    """Interrupts the run unless it came back to life; returns whether its testbed is to be cleaned."""
    run = Run.objects.select_for_update().get(number=number)
    if not lab.expired().filter(pk=lease.pk).exists():
        return False
    if run.state in states.ACTIVE:
        states.interrupt(number, losses.note(run, lease))
    for boot in Boot.objects.filter(run=run, state__in=[BootState.BOOTING, BootState.UP]):
        record.boot_ended(boot, BootState.INTERRUPTED, "the worker died")
    return True


def _clean_up(run: Run, lease: Lease) -> None:
    try:
        replay_spool(run)
        Plays(run).restore()
    except (PlayError, OSError) as error:
        log.warning("testbed %s stays out of service, for it cannot be restored: %s", run.testbed, error)
        lab.quarantine(lease, plain(f"{UNRESTORED}: {error}"))
        return
    with transaction.atomic():
        lab.release(lease)
        losses.go_on(run, lease)


def replay_spool(run: Run) -> None:
    """Brings into the database what `run` had measured when its worker or the database died.

    What another version of this program measured may be nothing that this one knows; it is set aside.
    """
    for journal in spool.unfinished(run):
        _salvage(run, journal)
    for path in spool.waiting(run):
        try:
            measurement = record.measurement(spool.read(path))
        except NOT_STORABLE as error:
            log.error(
                "%s: kept what was measured in %s, for it cannot be stored: %r", run, spool.set_aside(path), error
            )
        else:
            spool.remove(path)
            log.info("%s: saved %s from the spool", run, measurement.test)


def _salvage(run: Run, journal: Path) -> None:
    """Makes results of what a journal has, also of the measurement that was under way."""
    try:
        documents = list(spool.salvaged(journal))
    except NOT_STORABLE as error:
        log.error("%s: kept the journal %s, for it cannot be read: %r", run, spool.set_aside(journal), error)
        return
    for document in documents:
        spool.put(run, document)
    spool.remove(journal)
