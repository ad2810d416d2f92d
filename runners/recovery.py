# SPDX-License-Identifier: BSD-2-Clause
"""Cleans up after workers that died: says so in their runs, restores their testbeds, saves what they had measured.

Testbeds that a run could not restore at its end are restored here, too, as soon as that works again.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from django.db import InterfaceError, OperationalError, transaction

from perfweb import logs
from perfweb.faults import services as faults
from perfweb.lab import services as lab
from perfweb.lab.models import Lease
from perfweb.plaintext import plain
from perfweb.runs import states
from perfweb.runs.models import Boot, BootState, Run, RunState
from runners import clocks, losses, record, space, spool
from runners.driver import PlayError
from runners.plays import Plays

log = logging.getLogger(__name__)
UNRESTORED = "the lab could not be restored"
AWAY = (OperationalError, InterfaceError)
"""The database does not answer: nothing is wrong with what was to be stored."""
RECOVER = faults.Task(
    "recover", "it is tried again; look at the worker's log, and give the testbed up with manage.py free TESTBED"
)
RESUME = faults.Task("resume a paused run", "it is tried again; manage.py resume N says what is wrong")
GO_ON = faults.Task("go on", "the run stays interrupted: manage.py resume N, or submit its plan again", lasting=True)
REPLAY = faults.Task("replay the spool", "make room on the disk of its machine, then manage.py spool retry there")
UNREADABLE = faults.Task("read from the spool", "it is tried again; look at the disk of the machine")
SPOOL = faults.Task(
    "store from the spool", "see the worker's log; manage.py spool retry on its machine stores it after a repair",
    lasting=True,
)  # fmt: skip


def recover(name: str = "") -> None:
    """Ends every run of the lab `name` whose lease has expired, cleans its testbed, and queues it again
    (runners.losses).  Only the lab's own controller reaches its hosts, and has what its workers had measured.

    A testbed that cannot be restored stays out of service and is tried again, unless `manage.py free` gives it up.
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
    """Interrupts the run unless it came back to life; returns whether its testbed is to be cleaned."""
    run = Run.objects.select_for_update().get(number=number)
    if not lab.expired().filter(pk=lease.pk).exists():
        return False
    if run.state in states.ACTIVE:
        why = losses.note(run, lease)
        for boot in Boot.objects.filter(run=run, state__in=[BootState.BOOTING, BootState.UP]):
            record.boot_ended(boot, BootState.INTERRUPTED, "the worker died")
        states.interrupt(number, why)
    return True


def _clean_up(run: Run, lease: Lease) -> None:
    try:
        replay_spool(run)
        Plays(run).restore()
    except AWAY:
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
    losses.go_on(run, lease)


def replay_spool(run: Run) -> None:
    """Brings into the database what `run` had measured when its worker or the database died.

    A file that cannot be read or stored, such as one of another version of this program, is set aside, and the others
    are stored.  Raises OSError where this machine has no room for the results of a journal.
    """
    for journal in spool.unfinished(run):
        _store(journal, lambda journal=journal: _salvage(run, journal))  # type: ignore[misc]
    for path in spool.waiting(run):
        _store(path, lambda path=path: _save(run, path))  # type: ignore[misc]


def _store(path: Path, step: Callable[[], None]) -> None:
    try:
        step()
    except AWAY:
        raise
    except OSError as error:
        if space.is_full(error):
            raise
        faults.note(UNREADABLE, spooled(path), error)
    except Exception as error:
        faults.note(SPOOL, spooled(spool.set_aside(path)), error)


def spooled(path: Path) -> str:
    """A file of the spool by its name below PERFWEB_VAR."""
    return str(path.relative_to(path.parents[2]))


def _save(run: Run, path: Path) -> None:
    measurement = record.measurement(spool.read(path))
    spool.remove(path)
    log.info("%s: saved %s from the spool", run, measurement.test)


def _salvage(run: Run, journal: Path) -> None:
    """Makes results of what a journal has, also of the measurement that was under way."""
    documents, damaged = spool.salvaged(journal)
    for document in documents:
        spool.put(run, document)
    if damaged:
        raise ValueError(f"the readable lines are stored, {len(damaged)} are not readable: {damaged[0][:80]!r}")
    spool.remove(journal)
