# SPDX-License-Identifier: BSD-2-Clause
"""Recovers from lost workers: interrupts their runs, restores their testbeds, stores their results.

Testbeds that a run could not restore at its end are restored here, too, as soon as that is possible.
"""

import logging

from django.db import transaction

from perfweb import logs
from perfweb.faults import services as faults
from perfweb.lab import services as lab
from perfweb.lab.models import Lease
from perfweb.measuring import record, space, spool_replay
from perfweb.plaintext import plain
from perfweb.runs import states
from perfweb.runs.models import Boot, BootState, Run, RunState
from runners import clocks, worker_losses
from runners.ansible.driver import PlayError
from runners.ansible.plays import Plays

log = logging.getLogger(__name__)
UNRESTORED = "the lab could not be restored"
RECOVER = faults.Task(
    "recover", "it is tried again; read the worker's log, and give the testbed up with manage.py free TESTBED"
)
RESUME = faults.Task("resume a paused run", "it is tried again; manage.py resume N prints the fault")
GO_ON = faults.Task("go on", "the run stays interrupted: manage.py resume N, or submit its plan again", lasting=True)


def recover(name: str = "") -> None:
    """Ends every run of the lab `name` whose lease has expired, cleans its testbed, and queues it again.

    runners.worker_losses decides whether it is queued. Only the lab's own controller reaches its hosts and has the
    spool of its workers. A testbed that cannot be restored stays out of service and is tried again, unless
    `manage.py free` releases it.
    """
    clocks.database.check()
    faults.for_each(RECOVER, lab.expired().filter(testbed__lab=name).select_related("testbed"), _recover)


def resume_paused(name: str = "") -> None:
    """Queues the paused runs of the lab `name` again once this machine, its controller, has space."""
    paused = Run.objects.filter(state=RunState.PAUSED, testbed__lab=name, lease__released__isnull=False)
    if paused.exists() and not space.shortages():
        faults.for_each(RESUME, list(paused), lambda run: states.requeue(run.number, "there is space again"))


def _recover(lease: Lease) -> None:
    run = Run.objects.filter(lease=lease).select_related("testbed").first()
    if run is None:
        lab.release(lease)
        return
    with logs.about(run=run.number):
        if _interrupt(run.number, lease):
            _clean_up(run, lease)


@transaction.atomic
def _interrupt(number: int, lease: Lease) -> bool:
    """Interrupts the run unless it is alive again; returns whether its testbed has to be cleaned."""
    run = Run.objects.select_for_update().get(number=number)
    if not lab.expired().filter(pk=lease.pk).exists():
        return False
    if run.state in states.ACTIVE:
        why = worker_losses.note(run, lease)
        for boot in Boot.objects.filter(run=run, state__in=[BootState.BOOTING, BootState.UP]):
            record.boot_ended(boot, BootState.INTERRUPTED, "the worker died")
        states.interrupt(number, why)
    return True


def _clean_up(run: Run, lease: Lease) -> None:
    try:
        spool_replay.replay(run)
        Plays(run).restore()
    except spool_replay.AWAY:
        raise
    except Exception as error:
        log.warning("testbed %s stays out of service, for it cannot be restored: %s", run.testbed, error)
        lab.quarantine(lease, plain(f"{UNRESTORED}: {error}"))
        if not isinstance(error, PlayError | OSError):
            raise
        return
    faults.attempt(GO_ON, str(run), lambda: _give_back(run, lease))
    lab.release(lease)


@transaction.atomic
def _give_back(run: Run, lease: Lease) -> None:
    lab.release(lease)
    worker_losses.go_on(run, lease)
