# SPDX-License-Identifier: BSD-2-Clause
"""What all environments share.  Everything that differs between machines comes from PERFWEB_* variables."""

import os
from pathlib import Path
from typing import Any

BASE_DIR = Path(__file__).resolve().parents[2]
PERFWEB_VAR = Path(os.environ.get("PERFWEB_VAR", BASE_DIR / "var"))
# Where `./dev` puts sockets and the address of the pages (runners/services.py).  With a long path `run` is a link to a
# short one, and the name of a socket has to be short.
_RUN = (PERFWEB_VAR / "run").resolve()

INSTALLED_APPS = [
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "perfweb.lab",
    "perfweb.builds",
    "perfweb.runs",
    "perfweb.imports",
    "perfweb.reports",
    "perfweb.api",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "perfweb.headers.ContentSecurityPolicy",
    "perfweb.headers.Compression",
    "perfweb.api.problems.ApiAnswers",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "perfweb.urls"
ASGI_APPLICATION = "perfweb.asgi.application"
WSGI_APPLICATION = "perfweb.wsgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]

# Connections are not kept between requests: Django asks for that under ASGI, and over a UNIX socket a new one costs
# about a millisecond.
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PERFWEB_PGHOST", str(_RUN / "postgresql")),
        "PORT": os.environ.get("PERFWEB_PGPORT", ""),
        "USER": os.environ.get("PERFWEB_PGUSER", "perfweb"),
        "PASSWORD": os.environ.get("PERFWEB_PGPASSWORD", ""),
        "NAME": os.environ.get("PERFWEB_PGDATABASE", "perfweb"),
        "OPTIONS": {"connect_timeout": 5},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

_redis_socket = os.environ.get("PERFWEB_REDIS_SOCKET", str(_RUN / "redis" / "redis.sock"))
REDIS_URL = os.environ.get("PERFWEB_REDIS_URL") or f"unix://{_redis_socket}?db=0"
CELERY_BROKER_URL = os.environ.get("PERFWEB_REDIS_URL") or f"redis+socket://{_redis_socket}?virtual_host=0"
CELERY_TASK_IGNORE_RESULT = True  # the state of a run is in its models
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# A run may take hours.  Redis hands a task that is not acknowledged for this long to another worker; the task would
# find the run taken and return, so this is about noise and not about safety.
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 24 * 3600}

CELERY_BEAT_SCHEDULE = {
    # A run that lost its worker is found a lease and a beat later at most.  The queue of runs is the database, so
    # this also finds what a lost message left waiting.
    "recover": {"task": "runners.tasks.recover", "schedule": 10.0, "options": {"expires": 10.0}},
}
# Seconds that a testbed stays taken after the last sign of life of the run that holds it.
LEASE_SECONDS = float(os.environ.get("PERFWEB_LEASE_SECONDS", "30"))
# Seconds for which a run waits for a database that does not answer before it gives up and cleans the lab.
DATABASE_PATIENCE = float(os.environ.get("PERFWEB_DATABASE_PATIENCE", "60"))

# Of the lab of namespaces that `./dev` raises; not there where testbeds are registered by hand.
LAB_INVENTORY = os.environ.get("PERFWEB_LAB_INVENTORY", str(PERFWEB_VAR / "lab" / "inventory.yml"))


def _site_url() -> str:
    """Where people reach the pages: where we are told, or where `./dev` has put them."""
    told = os.environ.get("PERFWEB_SITE_URL", "")
    address = _RUN / "url"
    if not told and address.exists():
        told = address.read_text(encoding="ascii").strip()
    return (told or f"http://127.0.0.1:{os.environ.get('PERFWEB_PORT', '8000')}").rstrip("/")


# For the addresses that commands print.
SITE_URL = _site_url()

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATIC_ROOT = PERFWEB_VAR / "static"
STATICFILES_DIRS = [path for path in (BASE_DIR / "static",) if path.is_dir()]

# Pages load nothing but our own files and may not be framed.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}


def secret_key_from_file() -> str:
    """The key in the file that PERFWEB_SECRET_KEY_FILE names, or "" if the variable is not set."""
    name = os.environ.get("PERFWEB_SECRET_KEY_FILE", "")
    return Path(name).read_text(encoding="ascii").strip() if name else ""
