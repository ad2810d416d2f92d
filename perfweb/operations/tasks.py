# SPDX-License-Identifier: BSD-2-Clause
"""Celery's tasks of operations."""

import logging

from celery import shared_task
from django.conf import settings

from perfweb.faults import services as faults
from perfweb.operations import contradictions
from perfweb.operations.health import beaten
from perfweb.operations.thinning import MOST, thin
from perfweb.runs.invariants import CHEAP, CHECKS

log = logging.getLogger(__name__)


@shared_task
def beat() -> None:
    """Store beat's call for the health check."""
    beaten()


@shared_task
def give_up_raw_outputs() -> None:
    """Thin by the setting's rule; without one everything is kept."""
    if settings.RAW_KEPT_DAYS and (done := thin(settings.RAW_KEPT_DAYS, most=MOST)).texts:
        log.info("%d raw outputs with %d bytes given up", done.texts, done.size)


@shared_task
def check_invariants() -> None:
    """Check the invariants of runs, leases and boots."""
    contradictions.look(CHEAP)


@shared_task
def check_all_invariants() -> None:
    """Check the invariants of the whole database: it reads every sample and raw output."""
    contradictions.look(CHECKS)


@shared_task
def forget() -> None:
    """Delete faults that do not repeat."""
    faults.forget()
