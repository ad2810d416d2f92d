# SPDX-License-Identifier: BSD-2-Clause
"""Celery's task of Patchwork; what it loses, the next one finds."""

from celery import shared_task

from perfweb.patchwork import checks, polling


@shared_task
def attend() -> None:
    """Submit new series, and post the checks of all."""
    polling.poll_all()
    checks.follow()
