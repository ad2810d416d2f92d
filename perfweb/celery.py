# SPDX-License-Identifier: BSD-2-Clause
"""The Celery application: `celery -A perfweb worker`, `celery -A perfweb beat`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
app = Celery("perfweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    ["runners", *(f"perfweb.{name}" for name in ("outbox", "mail", "forges", "tracking", "operations"))]
)
