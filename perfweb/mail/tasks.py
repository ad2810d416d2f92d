# SPDX-License-Identifier: BSD-2-Clause
"""Celery's periodic tasks for series."""

from celery import shared_task
from django.conf import settings

from perfweb.mail import series


@shared_task
def attend() -> None:
    """Submit complete series, and answer finished ones."""
    if settings.MAIL_ADDRESS:
        series.attend()


@shared_task
def forget() -> None:
    """Delete old patches."""
    series.forget()
