# SPDX-License-Identifier: BSD-2-Clause
"""Celery's task of tracking; it runs again and again, so that nothing depends on one call."""

from celery import shared_task

from perfweb.tracking import scheduler


@shared_task
def attend() -> None:
    """Do what is due on all tracked branches."""
    scheduler.attend()
