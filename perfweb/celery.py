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
    ["runners", *(f"perfweb.{name}" for name in ("outbox", "mail", "forges", "tracking", "operations"))]
)


def _as_settings_say(loglevel: int | None = None, **_: Any) -> None:
    logging.config.dictConfig(settings.LOGGING)
    logging.getLogger().setLevel(loglevel or logging.INFO)


if settings.LOG:  # Celery leaves logging to a receiver of this signal; without one it configures its own.
    setup_logging.connect(_as_settings_say)


@worker_init.connect
def _count_as_there_for_good(**_: Any) -> None:
    """Has garbage collected in time that a worker's imports, some 220 000 objects, would keep waiting.

    Python looks for garbage among what has lived long only when a quarter as much has come to it, here that of hundreds
    of runs.  What is frozen is not counted, and a worker's children, who inherit it, do not copy it for looking at it.
    """
    gc.freeze()
    gc.collect()  # begins the count anew
