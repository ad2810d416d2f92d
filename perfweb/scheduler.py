# SPDX-License-Identifier: BSD-2-Clause
"""Celery beat by the monotonic clock, which neither a clock that is put back nor a full disk stops.

Celery's own schedulers compute the next call from the time of day.  After a step of an hour back they call nothing for
an hour, and the persistent one ends when it cannot write its file.

Celery's signal handler raises an exception to end beat. In the middle of a call redis-py replaces that exception by
another one, and beat continues.
"""

import contextlib
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

from celery.beat import ScheduleEntry, Scheduler, Service
from celery.schedules import schedule
from celery.signals import beat_init


class SteadyScheduler(Scheduler):
    """Calls each entry of the schedule when beat starts, and then in equal intervals; `schedule` is in seconds."""

    def __init__(self, *arguments: Any, schedule_filename: str = "", **named: Any) -> None:
        self._due: dict[str, float] = {}
        self._alive = schedule_filename
        self._calling = self._stopped = False
        super().__init__(*arguments, **named)

    def setup_schedule(self) -> None:
        """Take the entries of the settings only."""
        self.merge_inplace(self.app.conf.beat_schedule)

    def tick(self, *_: Any, **__: Any) -> float:
        """Call the due entries; return the seconds until the next."""
        for name, entry in self.schedule.items():
            now = time.monotonic()
            if self._due.setdefault(name, now) <= now:
                self._due[name] = now + self._seconds(entry)
                self._call(entry)
        return max(min(self._due.values(), default=0.0) - time.monotonic(), 0.0)

    def _call(self, entry: ScheduleEntry) -> None:
        self._calling = True
        try:
            self.apply_entry(entry, producer=self.producer)
        finally:
            self._calling = False
        if self._stopped:
            raise SystemExit

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """End beat as a signal handler: at once, or after the call under way, which takes the broker's time-out."""
        self._stopped = True
        if not self._calling:
            raise SystemExit

    @staticmethod
    def _seconds(entry: ScheduleEntry) -> float:
        if not isinstance(entry.schedule, schedule):
            raise TypeError(f"{entry.name} has no interval: give its schedule in seconds")
        return entry.schedule.seconds

    def sync(self) -> None:
        """Update the timestamp of a file every three minutes, as a sign of life."""
        if self._alive:
            with contextlib.suppress(OSError):
                Path(self._alive).touch()


@beat_init.connect
def handle_signals(sender: Service, **_: Any) -> None:
    """Replace Celery's signal handlers."""
    if isinstance(sender.scheduler, SteadyScheduler):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, sender.scheduler.stop)
