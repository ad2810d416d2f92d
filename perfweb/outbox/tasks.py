# SPDX-License-Identifier: BSD-2-Clause
"""Celery's periodic tasks of the outbox."""

from celery import shared_task

from perfweb.outbox import services


@shared_task
def deliver() -> None:
    """Try all letters that are due."""
    services.deliver()


@shared_task
def forget() -> None:
    """Delete the content of old letters."""
    services.forget()
