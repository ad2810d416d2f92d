# SPDX-License-Identifier: BSD-2-Clause
"""A single user on one machine: `./dev demo` and `./dev serve`."""

import secrets

from perfweb.settings.base import *

DEBUG = False  # the pages have helpful errors of their own
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
# The address of `./dev`, so that links which commands print lead to the server that it has started.
SECRET_KEY = secret_key_from_file(PERFWEB_VAR / "secret_key") or secrets.token_urlsafe(50)
WHITENOISE_USE_FINDERS = True
