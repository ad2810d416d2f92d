# SPDX-License-Identifier: BSD-2-Clause
"""Settings of all environments.  Values that differ between machines come from PERFWEB_* variables."""

import os
from pathlib import Path
from typing import Any

from perfweb import inputlimits, logs, proxies

BASE_DIR = Path(__file__).resolve().parents[2]
PERFWEB_VAR = Path(os.environ.get("PERFWEB_VAR", BASE_DIR / "var"))
# The directory of sockets and the pages' address of `./dev` (runners/services). With a long path `run` is a link to a
# short one, because the name of a socket has to be short.
_RUN = (PERFWEB_VAR / "run").resolve()

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "perfweb.faults",
    "perfweb.accounts",
    "perfweb.lab",
    "perfweb.builds",
    "perfweb.runs",
    "perfweb.imports",
    "perfweb.reports",
    "perfweb.submissions",
    "perfweb.outbox",
    "perfweb.manual",
    "perfweb.tracking",
    "perfweb.mail",
    "perfweb.forges",
    "perfweb.patchwork",
    "perfweb.api",
    "perfweb.operations",
    "perfweb.samples",
]
MIDDLEWARE = [
    "perfweb.headers.LoggedPath",
    "django.middleware.security.SecurityMiddleware",
    "perfweb.headers.ContentSecurityPolicy",
    "perfweb.headers.Compression",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "perfweb.accounts.middleware.Personal",
    "perfweb.api.problems.ApiAnswers",
    "perfweb.serving.malformed.WellFormed",
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

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PERFWEB_PGHOST", str(_RUN / "postgresql")),
        "PORT": os.environ.get("PERFWEB_PGPORT", ""),
        "USER": os.environ.get("PERFWEB_PGUSER", "perfweb"),
        "PASSWORD": os.environ.get("PERFWEB_PGPASSWORD", ""),
        "NAME": os.environ.get("PERFWEB_PGDATABASE", "perfweb"),
        # The disappearance of a server's host is noticed after 25 s
        # (https://www.postgresql.org/docs/15/libpq-connect.html).
        "OPTIONS": {
            "connect_timeout": 5,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 25_000,
        },
    }
}
AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS: list[dict[str, Any]] = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "CommonPasswordValidator")
]
AUTH_PASSWORD_VALIDATORS += [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}}
]
LOGIN_URL = "accounts:sign-in"
LOGIN_REDIRECT_URL = "accounts:account"
LOGOUT_REDIRECT_URL = "dashboard:home"
CSRF_FAILURE_VIEW = "perfweb.accounts.views.csrf_failure"
CSRF_COOKIE_HTTPONLY = SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = SESSION_COOKIE_SAMESITE = "Lax"

# Sign-in with an external account (docs/howto/accounts.md): a provider is off until its client id is set. The role is
# that of a new account.
GITHUB_URL = os.environ.get("PERFWEB_GITHUB_URL", "").rstrip("/") or "https://github.com"
GITHUB_CLIENT_ID = os.environ.get("PERFWEB_GITHUB_CLIENT_ID", "")
GITHUB_SECRET_FILE = os.environ.get("PERFWEB_GITHUB_SECRET_FILE", "")
OIDC_ISSUER = os.environ.get("PERFWEB_OIDC_ISSUER", "")
OIDC_CLIENT_ID = os.environ.get("PERFWEB_OIDC_CLIENT_ID", "")
OIDC_SECRET_FILE = os.environ.get("PERFWEB_OIDC_SECRET_FILE", "")
OIDC_NAME = os.environ.get("PERFWEB_OIDC_NAME", "")
NEWCOMER_ROLE = os.environ.get("PERFWEB_NEWCOMER_ROLE", "") or "reader"

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

_redis_socket = os.environ.get("PERFWEB_REDIS_SOCKET", str(_RUN / "redis" / "redis.sock"))
_redis_db = os.environ.get("PERFWEB_REDIS_DB", "0")
REDIS_URL = os.environ.get("PERFWEB_REDIS_URL") or f"unix://{_redis_socket}?db={_redis_db}"
CELERY_BROKER_URL = os.environ.get("PERFWEB_REDIS_URL") or f"redis+socket://{_redis_socket}?virtual_host={_redis_db}"
CELERY_TASK_IGNORE_RESULT = True  # the state of a run is in its models
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # workers and beat wait for Redis without a limit
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# A run may take hours. Redis delivers a task that is not acknowledged for this long to another worker; the task would
# find the run taken and return, so this only avoids needless deliveries.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 24 * 3600,
    # A Redis that hangs, or whose host has vanished, counts as unavailable.
    "socket_timeout": 5.0,
    "socket_connect_timeout": 5.0,
}

CELERY_BEAT_SCHEDULER = "perfweb.scheduler:SteadyScheduler"
CELERY_BEAT_SCHEDULE = {
    # A run that lost its worker is found after a lease and a beat at most. The queue of runs is in the database, so
    # this also finds runs whose message was lost.
    "recover": {"task": "runners.tasks.recover", "schedule": 10.0, "options": {"expires": 10.0}},
    "pack sources": {"task": "perfweb.builds.tasks.pack", "schedule": 10.0, "options": {"expires": 10.0}},
    "recover labs": {"task": "runners.tasks.recover_labs", "schedule": 10.0, "options": {"expires": 10.0}},
    "follow": {"task": "perfweb.forges.tasks.follow", "schedule": 10.0, "options": {"expires": 10.0}},
    "deliver": {"task": "perfweb.outbox.tasks.deliver", "schedule": 10.0, "options": {"expires": 10.0}},
    "attend to tracked branches": {
        "task": "perfweb.tracking.tasks.attend",
        "schedule": 10.0,
        "options": {"expires": 10.0},
    },
    "show that beat calls": {
        "task": "perfweb.operations.tasks.beat",
        "schedule": 10.0,
        "options": {"expires": 10.0},
    },
    "give up raw outputs": {
        "task": "perfweb.operations.tasks.give_up_raw_outputs",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    "attend to Patchwork": {"task": "perfweb.patchwork.tasks.attend", "schedule": 30.0, "options": {"expires": 30.0}},
    "attend to mail": {"task": "perfweb.mail.tasks.attend", "schedule": 10.0, "options": {"expires": 10.0}},
    **{
        f"forget in {app}": {"task": f"perfweb.{app}.tasks.forget", "schedule": 3600.0, "options": {"expires": 3600.0}}
        for app in ("outbox", "forges", "mail", "operations")
    },
    **{
        name.replace("_", " "): {
            "task": f"perfweb.operations.tasks.{name}",
            "schedule": seconds,
            "options": {"expires": seconds},
        }
        for name, seconds in (("check_invariants", 300.0), ("check_all_invariants", 24 * 3600.0))
    },
}
# A separate worker sends messages, so that they do not wait for the end of a run.
CELERY_TASK_ROUTES = {
    "runners.tasks.recover_labs": {"queue": "messages"},
    **{
        f"perfweb.{app}.tasks.*": {"queue": "messages"}
        for app in ("builds", "outbox", "mail", "forges", "patchwork", "tracking", "operations")
    },
}
# The function that delivers letters of a channel (perfweb.outbox).
OUTBOX_SENDERS = {
    "mail": "perfweb.mail.sending.send",
    "forge": "perfweb.forges.sending.send",
    "patchwork": "perfweb.patchwork.checks.send",
    "hook": "perfweb.outbox.hooks.send",
    "webhook": "perfweb.tracking.alerts.webhooks.send",
}
# Networks that webhooks of users may reach besides the public Internet.
HOOK_NETWORKS = proxies.networks(os.environ.get("PERFWEB_HOOK_NETWORKS", ""), "PERFWEB_HOOK_NETWORKS")
# Directory of packed sources for all controllers of labs; empty: below PERFWEB_VAR.
SOURCE_STORE = os.environ.get("PERFWEB_SOURCES", "")
# Days for which tools' output and logs of runs are kept; 0 means for ever.
RAW_KEPT_DAYS = int(os.environ.get("PERFWEB_RAW_KEPT_DAYS", "0"))
# Days for which the texts of letters, mails and webhooks are kept after they were handled.
MESSAGES_KEPT_DAYS = int(os.environ.get("PERFWEB_MESSAGES_KEPT_DAYS", "365"))
# Tokens of forges and secrets of their webhooks, in files.
FORGE_SECRETS = Path(os.environ.get("PERFWEB_FORGE_SECRETS", PERFWEB_VAR / "forges"))
# The repository of the commits to which patches are applied: a checkout, or a bare clone that its operator updates.
PATCH_REPOSITORY = Path(os.environ.get("PERFWEB_REPOSITORY", BASE_DIR))
# Limits of an author without permission to approve: unfinished submissions, and hours of testbed time in a day.
OPEN_SUBMISSIONS = int(os.environ.get("PERFWEB_OPEN_SUBMISSIONS", "5"))
SUBMISSION_HOURS = float(os.environ.get("PERFWEB_SUBMISSION_HOURS", "6"))

# Patches by mail (docs/howto/mail.md): the service's own address, without which there is no mail; the name under which
# the mail server signs Authentication-Results; mailing lists, `LIST-ID=ADDRESS`, comma-separated; the default testbed.
MAIL_ADDRESS = os.environ.get("PERFWEB_MAIL_ADDRESS", "")
MAIL_AUTHSERV_ID = os.environ.get("PERFWEB_MAIL_AUTHSERV_ID", "")
MAIL_LISTS = {
    name.strip().lower(): address.strip()
    for name, found, address in (item.partition("=") for item in os.environ.get("PERFWEB_MAIL_LISTS", "").split(","))
    if found
}
MAIL_SOCKET_GROUP = os.environ.get("PERFWEB_MAIL_SOCKET_GROUP", "")
MAIL_TESTBED = os.environ.get("PERFWEB_MAIL_TESTBED", "")
# A mailbox to fetch from (manage.py mail_fetch), if no mail server delivers to the service.
IMAP_HOST = os.environ.get("PERFWEB_IMAP_HOST", "")
IMAP_PORT = int(os.environ.get("PERFWEB_IMAP_PORT", "993"))
IMAP_USER = os.environ.get("PERFWEB_IMAP_USER", "")
IMAP_PASSWORD_FILE = os.environ.get("PERFWEB_IMAP_PASSWORD_FILE", "")
IMAP_FOLDER = os.environ.get("PERFWEB_IMAP_FOLDER", "INBOX")
IMAP_DONE_FOLDER = os.environ.get("PERFWEB_IMAP_DONE_FOLDER", "")
IMAP_CA_FILE = os.environ.get("PERFWEB_IMAP_CA_FILE", "")
EMAIL_HOST = os.environ.get("PERFWEB_SMTP_HOST", "localhost")
EMAIL_PORT = int(os.environ.get("PERFWEB_SMTP_PORT", "25"))
EMAIL_HOST_USER = os.environ.get("PERFWEB_SMTP_USER", "")
EMAIL_HOST_PASSWORD = os.environ.get("PERFWEB_SMTP_PASSWORD", "")
EMAIL_USE_TLS = os.environ.get("PERFWEB_SMTP_STARTTLS", "0") != "0"
EMAIL_TIMEOUT = 20

# Seconds for which a testbed stays leased after the last heartbeat of its run.
LEASE_SECONDS = float(os.environ.get("PERFWEB_LEASE_SECONDS", "30"))
# Faults of a testbed in a row after which it is in quarantine, and seconds after a fault in which it takes no run.
QUARANTINE_FAULTS = int(os.environ.get("PERFWEB_QUARANTINE_FAULTS", "3"))
UNFIT_SECONDS = float(os.environ.get("PERFWEB_UNFIT_SECONDS", "60"))
# Seconds for which a run waits for a database that does not answer before it gives up and cleans the lab.
DATABASE_PATIENCE = float(os.environ.get("PERFWEB_DATABASE_PATIENCE", "60"))
# Megabytes that must be free on the disks of a controller before each boot of a run; with less the run pauses.
RESERVE_MB = int(os.environ.get("PERFWEB_RESERVE_MB", "16"))

# The inventory of the lab of namespaces of `./dev`; missing if testbeds are registered by hand.
LAB_INVENTORY = os.environ.get("PERFWEB_LAB_INVENTORY", str(PERFWEB_VAR / "lab" / "inventory.yml"))


def _site_url() -> str:
    """Return the site's address: the configured one, or that of `./dev`."""
    configured = os.environ.get("PERFWEB_SITE_URL", "")
    address = _RUN / "url"
    if not configured and address.exists():
        configured = address.read_text(encoding="ascii").strip()
    return (configured or f"http://127.0.0.1:{os.environ.get('PERFWEB_PORT', '8000')}").rstrip("/")


# For the addresses that commands print.
SITE_URL = _site_url()

# A cache in each process. It holds no counters, which have to be exact, and no data that need Redis.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# Addresses and networks of the reverse proxies whose X-Forwarded-For and X-Forwarded-Proto count; none unless listed.
TRUSTED_PROXIES = proxies.networks(os.environ.get("PERFWEB_TRUSTED_PROXIES", ""))
# Limits of a web process (perfweb.serving.connections, perfweb.server): connections, event streams, and event streams
# for one client network.
CONNECTIONS = int(os.environ.get("PERFWEB_CONNECTIONS", "6000"))
STREAMS = int(os.environ.get("PERFWEB_STREAMS", "1500"))
STREAMS_OF_NETWORK = int(os.environ.get("PERFWEB_STREAMS_OF_NETWORK", "100"))
# Max bytes of a request; patches are the largest.
LARGEST_UPLOAD = DATA_UPLOAD_MAX_MEMORY_SIZE = inputlimits.REQUEST_BYTES
DATA_UPLOAD_MAX_NUMBER_FIELDS = inputlimits.FORM_FIELDS
DATA_UPLOAD_MAX_NUMBER_FILES = inputlimits.FORM_FILES

STATIC_URL = "static/"
STATIC_ROOT = PERFWEB_VAR / "static"
STATICFILES_DIRS: list[Any] = [path for path in (BASE_DIR / "static",) if path.is_dir()]
STATICFILES_DIRS += [("docs", path) for path in (BASE_DIR / "docs" / "images",) if path.is_dir()]

# Pages load only the site's own files and must not be framed.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"

LOG = os.environ.get("PERFWEB_LOG", "")
LOGGING = logs.configuration(LOG)


def secret_key_from_file(usual: Path | None = None) -> str:
    """Return the key from the file of PERFWEB_SECRET_KEY_FILE, else from the default one if it is readable, else ""."""
    name = os.environ.get("PERFWEB_SECRET_KEY_FILE", "")
    file = Path(name) if name else usual
    return file.read_text(encoding="ascii").strip() if file and (name or os.access(file, os.R_OK)) else ""
