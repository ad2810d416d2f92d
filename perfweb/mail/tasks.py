# SPDX-License-Identifier: BSD-2-Clause
"""Celery's tasks that look after series; they run again and again, so that nothing depends on a single call."""

from celery import shared_task
from django.conf import settings

from perfweb.mail import series


@shared_task
def attend() -> None:
    """Submit what is whole, and answer what is over."""
    if settings.MAIL_ADDRESS:
        series.attend()


@shared_task
def forget() -> None:
    """Forget what was sent long ago."""
    series.forget()
