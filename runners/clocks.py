# SPDX-License-Identifier: BSD-2-Clause
"""Detects steps of the database's clock, by which leases expire, against this machine's monotonic clock.

A step forward would expire the leases of live runs, and a step back would keep those of dead ones. So after a step
every lease is renewed once: a live holder renews its own within a second, and that of a dead one expires later.
"""

import logging
import time
from datetime import datetime

from django.db import connection

from perfweb.lab import services as lab

log = logging.getLogger(__name__)

STEP_SECONDS = 5.0
"""Differences up to this are delays of a busy machine."""


class StepDetector:
    """Compares the progress of the two clocks between two calls of `check`."""

    def __init__(self) -> None:
        self._seen: tuple[datetime, float] | None = None

    def check(self) -> float:
        """Renews all leases if the database's clock was set; returns the step in seconds, 0 for none."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            (now,) = cursor.fetchone()
        before, self._seen = self._seen, (now, time.monotonic())
        if before is None:
            return 0.0
        step: float = (now - before[0]).total_seconds() - (self._seen[1] - before[1])
        if abs(step) <= STEP_SECONDS:
            return 0.0
        log.warning("the clock of the database was set by %+.0f s: %d leases start again", step, lab.renew_all())
        return step


database = StepDetector()
"""The clock of this process."""
