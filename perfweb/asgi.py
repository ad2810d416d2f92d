# SPDX-License-Identifier: BSD-2-Clause
"""The ASGI entry point."""

import gc
import os
from typing import cast

import django
from asgiref.typing import ASGI3Application
from django.conf import settings
from django.urls import get_resolver

from perfweb.postgresql import pooled
from perfweb.proxies import TrustedProxies
from perfweb.serving.connections import ConnectionLimits, Places
from perfweb.serving.malformed import Handler
from perfweb.serving.unavailable import Unavailable
from perfweb.serving.uploads import UploadLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
# Each request has its own thread and gets its connection from a pool. For a new connection PostgreSQL starts a process
# that reads the catalogue first, which takes longer than the queries of most pages. Other processes connect less often.
settings.DATABASES["default"]["OPTIONS"] = pooled(settings.DATABASES["default"]["OPTIONS"])
settings.DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
django.setup(set_prefix=False)
_limits = ConnectionLimits(
    Unavailable(UploadLimit(cast("ASGI3Application", Handler()), settings.LARGEST_UPLOAD)),
    bodies=Places(500, 50),
    requests=Places(200, 100),
    streams=Places(settings.STREAMS, settings.STREAMS_OF_NETWORK),
    body_seconds=60,
)
application = TrustedProxies(_limits, settings.TRUSTED_PROXIES)
# All modules of views are imported now and stay, so that the garbage collector need not scan them in the middle of a
# response, which would take longer than most responses.
_ = get_resolver().url_patterns
gc.collect()
gc.freeze()
