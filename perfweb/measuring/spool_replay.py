# SPDX-License-Identifier: BSD-2-Clause
"""Stores the spool of this machine in the database after a worker or the database died."""

import logging
from collections.abc import Callable
from pathlib import Path

from django.db import InterfaceError, OperationalError

from perfweb.faults import services as faults
from perfweb.measuring import record, space, spool
from perfweb.runs.models import Run

log = logging.getLogger(__name__)
AWAY = (OperationalError, InterfaceError)
"""The database does not answer, so the failure is not one of the result."""
REPLAY = faults.Task("replay the spool", "make room on the disk of its machine, then manage.py spool retry there")
UNREADABLE = faults.Task("read from the spool", "it is tried again; check the disk of the machine")
SPOOL = faults.Task(
    "store from the spool", "see the worker's log; manage.py spool retry on its machine stores it after a repair",
    lasting=True,
)  # fmt: skip


def replay(run: Run) -> None:
    """Store the measurements of `run` that are in the spool.

    A file that cannot be read or stored, such as one of another version of this program, is set aside, and the others
    are stored. Raises OSError without disk space for the results of a journal.
    """
    for journal in spool.unfinished(run):
        _store(journal, lambda journal=journal: _salvage(run, journal))  # type: ignore[misc]
    for path in spool.waiting(run):
        _store(path, lambda path=path: _save(run, path))  # type: ignore[misc]


def spooled(path: Path) -> str:
    """A file of the spool by its name below PERFWEB_VAR."""
    return str(path.relative_to(path.parents[2]))


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


def _save(run: Run, path: Path) -> None:
    measurement = record.measurement(spool.read(path))
    spool.remove(path)
    log.info("%s: saved %s from the spool", run, measurement.test)


def _salvage(run: Run, journal: Path) -> None:
    """Turn a journal into results, with the interrupted measurement."""
    salvaged, damaged = spool.salvaged(journal)
    for raw in salvaged:
        spool.put(run, raw)
    if damaged:
        raise ValueError(f"the readable lines are stored, {len(damaged)} are not readable: {damaged[0][:80]!r}")
    spool.remove(journal)
