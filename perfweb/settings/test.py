# SPDX-License-Identifier: BSD-2-Clause
"""The test suite: the same engines as everywhere, a database of its own made by pytest-django."""

import os

from perfweb.settings.base import *

ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
SECRET_KEY = "only for tests"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # a slow one would be most of the time
# A database of which that of the tests is a copy, with all tables (tests/clusters.py).
DATABASES["default"]["TEST"] = {"TEMPLATE": os.environ.get("PERFWEB_TEST_TEMPLATE")}
STATIC_ROOT = BASE_DIR / "static"  # served as it lies in the tree
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
