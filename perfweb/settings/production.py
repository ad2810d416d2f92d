# SPDX-License-Identifier: BSD-2-Clause
"""A server for other users. It refuses to start without a required setting."""

import os

from django.core.exceptions import ImproperlyConfigured

from perfweb.settings.base import *


def _required(name: str, meaning: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise ImproperlyConfigured(f"{name} is not set: give it {meaning}")
    return value


def _list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


_required("PERFWEB_SECRET_KEY_FILE", "the path of a file with at least 50 random characters")
SECRET_KEY = secret_key_from_file()
if len(SECRET_KEY) < 50:
    raise ImproperlyConfigured("the file of PERFWEB_SECRET_KEY_FILE holds fewer than 50 characters: make a new key")
ALLOWED_HOSTS = _list(_required("PERFWEB_ALLOWED_HOSTS", "the host names of the site, separated by commas"))
if "*" in ALLOWED_HOSTS:
    raise ImproperlyConfigured("PERFWEB_ALLOWED_HOSTS must name the hosts; * would accept forged Host headers")
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS]
_required("PERFWEB_PGHOST", "the host or socket directory of PostgreSQL")
if not DATABASES["default"]["HOST"].startswith("/"):
    _required("PERFWEB_PGPASSWORD", "the password of the PostgreSQL user")

SECURE_SSL_REDIRECT = os.environ.get("PERFWEB_TLS", "1") != "0"
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if SECURE_SSL_REDIRECT else 0
# These two would promise HTTPS for a whole domain, of which this site may be only a part.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
