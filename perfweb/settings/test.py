# SPDX-License-Identifier: BSD-2-Clause
"""The test suite: the same engines as everywhere, with a separate database made by pytest-django."""

import os

from perfweb.settings.base import *

ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
SECRET_KEY = "only for tests"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a slow hash would take most of the time
# The database that is copied for the tests, with all tables (tests/clusters.py).
DATABASES["default"]["TEST"] = {"TEMPLATE": os.environ.get("PERFWEB_TEST_TEMPLATE")}
STATIC_ROOT = BASE_DIR / "static"  # served from the tree
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
