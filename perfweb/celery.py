# SPDX-License-Identifier: BSD-2-Clause
"""The Celery application: `celery -A perfweb worker`, `celery -A perfweb beat`."""

import gc
import logging.config
import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_init
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
app = Celery("perfweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        "runners",
        *(f"perfweb.{name}" for name in ("builds", "outbox", "mail", "forges", "patchwork", "tracking", "operations")),
    ]
)


def _configure_logging(loglevel: int | None = None, **_: Any) -> None:
    logging.config.dictConfig(settings.LOGGING)
    logging.getLogger().setLevel(loglevel or logging.INFO)


if settings.LOG:  # Celery leaves logging to a receiver of this signal; without one it configures its own.
    setup_logging.connect(_configure_logging)


@worker_init.connect
def _freeze_imports(**_: Any) -> None:
    """Collect garbage early, before the about 220 000 objects of a worker's imports make that slow.

    Python scans old objects only when a quarter as many have been added, which here takes hundreds of runs. Frozen
    objects are not counted, and the worker's children, which inherit them, do not copy them for a scan.
    """
    gc.freeze()
    gc.collect()  # restarts the count
