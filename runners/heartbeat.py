# SPDX-License-Identifier: BSD-2-Clause
"""The heartbeat of a run: a thread that renews the lease and looks for reasons to stop."""

import logging
import threading
from contextvars import copy_context
from functools import partial
from types import TracebackType

from django.conf import settings
from django.db import Error, connection

from perfweb.lab import services as lab
from perfweb.runs import states
from perfweb.runs.models import Run

log = logging.getLogger(__name__)

CANCELLED = "cancelled"
RECALLED = "the worker was stopped"
LOST = "the lease was lost"


class StopRequestedError(Exception):
    """The run must not continue; the heartbeat's `stop_reason` is the reason."""


class Heartbeat:
    """`with Heartbeat(run) as beat:` keeps the testbed; `beat.stop_reason` is empty while the run may continue."""

    def __init__(self, run: Run) -> None:
        if run.lease_id is None:
            raise ValueError(f"{run} has no lease to keep")
        self.number = run.number
        self.lease_id = run.lease_id
        self.stop_reason = ""
        self._done = threading.Event()
        # The thread gets the context of the run for the log, because a new thread has an empty one.
        beat = partial(copy_context().run, self._beat)
        self._thread = threading.Thread(target=beat, name=f"heartbeat of {run}", daemon=True)

    def must_stop(self) -> bool:
        return bool(self.stop_reason)

    def check(self) -> None:
        """Raises StopRequestedError if the run must stop."""
        if self.stop_reason:
            raise StopRequestedError(self.stop_reason)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        """Beats every second, so that cancelling is quick; without a database it tries again at the next beat."""
        try:
            while not self._done.wait(min(1.0, settings.LEASE_SECONDS / 5)):
                try:
                    self.stop_reason = self.stop_reason or self._check()
                except Error as error:
                    connection.close()
                    log.warning("no heartbeat of run %d: %s", self.number, str(error).strip())
                except Exception:  # without a heartbeat the run loses its testbed
                    log.exception("no heartbeat of run %d", self.number)
        finally:
            connection.close()

    def _check(self) -> str:
        lease = lab.renew(self.lease_id)
        run = Run.objects.filter(number=self.number).only("state", "cancel_requested").first()
        if lease is None or run is None or run.state not in states.ACTIVE:
            return LOST
        if run.cancel_requested:
            return CANCELLED
        return RECALLED if lease.recalled else ""
