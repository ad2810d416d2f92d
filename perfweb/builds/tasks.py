# SPDX-License-Identifier: BSD-2-Clause
"""Celery's task of sources; what it loses, the next one finds."""

from celery import shared_task

from perfweb.builds import packing


@shared_task
def pack() -> None:
    """Pack the sources that requests have named."""
    packing.pack_all()
