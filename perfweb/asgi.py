# SPDX-License-Identifier: BSD-2-Clause
"""The ASGI entry point."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
application = get_asgi_application()
