# SPDX-License-Identifier: BSD-2-Clause
"""Celery's task of operations."""

from celery import shared_task

from perfweb.operations.health import beaten


@shared_task
def beat() -> None:
    """Show that beat calls."""
    beaten()
