# SPDX-License-Identifier: BSD-2-Clause
"""The ASGI entry point."""

import gc
import os

from django.core.asgi import get_asgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
application = get_asgi_application()
# All modules that answer are imported now and stay, so that the collector need not look at them in the middle of an
# answer, where that takes longer than most answers.
_ = get_resolver().url_patterns
gc.collect()
gc.freeze()
