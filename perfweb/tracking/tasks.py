# SPDX-License-Identifier: BSD-2-Clause
"""Celery's periodic task of tracking."""

from celery import shared_task

from perfweb.tracking import scheduler


@shared_task
def attend() -> None:
    """Do the due steps on all tracked branches."""
    scheduler.attend()
