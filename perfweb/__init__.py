# SPDX-License-Identifier: BSD-2-Clause
from perfweb.celery import app as celery_app

__all__ = ["celery_app"]
