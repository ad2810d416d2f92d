# SPDX-License-Identifier: BSD-2-Clause
"""Imports the modules of this service's Celery worker, for the processes that are forked from this one."""

import gc
import importlib

from perfweb.celery import app

for name in (
    *("celery.apps.worker", "celery.bin.celery", "celery.bin.worker", "celery.concurrency.prefork"),
    *("celery.worker.consumer", "celery.worker.strategy", "kombu.transport.redis", "ansible_runner.interface"),
):
    importlib.import_module(name)
app.loader.import_default_modules()
gc.freeze()  # a fork shares pages that the garbage collector does not scan
