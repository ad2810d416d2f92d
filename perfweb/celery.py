# SPDX-License-Identifier: BSD-2-Clause
"""The Celery application: `celery -A perfweb worker`, `celery -A perfweb beat`."""

import logging.config
import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging
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


if settings.LOG:  # Celery leaves its logs to whoever takes this signal; otherwise they are as it makes them.
    setup_logging.connect(_as_settings_say)
