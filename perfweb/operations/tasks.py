# SPDX-License-Identifier: BSD-2-Clause
"""Celery's tasks of operations."""

import logging

from celery import shared_task
from django.conf import settings

from perfweb.operations.health import beaten
from perfweb.operations.thinning import MOST, thin

log = logging.getLogger(__name__)


@shared_task
def beat() -> None:
    """Show that beat calls."""
    beaten()


@shared_task
def give_up_raw_outputs() -> None:
    """Thin by the rule of the settings; without one everything is kept."""
    if settings.RAW_KEPT_DAYS and (done := thin(settings.RAW_KEPT_DAYS, most=MOST)).texts:
        log.info("%d raw outputs with %d bytes given up", done.texts, done.size)
