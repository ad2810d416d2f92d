# SPDX-License-Identifier: BSD-2-Clause
"""The ASGI entry point."""

import gc
import os
from typing import cast

from asgiref.typing import ASGI3Application
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import get_resolver

from perfweb.uploads import UploadLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
# Each request has a thread of its own, and its connection comes out of a pool: a server process that PostgreSQL starts
# for a new one reads the catalogue first, which takes longer than the queries of most pages. Nobody else asks that
# often. A connection that is no more, since the database was started anew, is replaced.
settings.DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 50, "timeout": 10}
settings.DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
application = UploadLimit(cast("ASGI3Application", get_asgi_application()), settings.LARGEST_UPLOAD)
# All modules that answer are imported now and stay, so that the collector need not look at them in the middle of an
# answer, where that takes longer than most answers.
_ = get_resolver().url_patterns
gc.collect()
gc.freeze()
