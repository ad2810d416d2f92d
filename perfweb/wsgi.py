# SPDX-License-Identifier: BSD-2-Clause
"""The WSGI entry point."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
application = get_wsgi_application()
