# SPDX-License-Identifier: BSD-2-Clause
"""The two secrets of a project, each in a file that only the service reads, so that no database dump has them."""

import secrets
from pathlib import Path

from django.conf import settings

from perfweb.forges.models import Project
from perfweb.outbox import secretfiles


def token(project: Project) -> str:
    """The token of the forge's API.  Raises secretfiles.SecretError."""
    return secretfiles.read(token_file(project))


def webhook_secret(project: Project) -> str:
    """The secret with which the forge signs webhooks.  Raises secretfiles.SecretError."""
    return secretfiles.read(secret_file(project))


def token_file(project: Project) -> Path:
    return Path(settings.FORGE_SECRETS) / f"{project.mirror.name}.token"


def secret_file(project: Project) -> Path:
    return Path(settings.FORGE_SECRETS) / f"{project.mirror.name}.secret"


def make(project: Project) -> None:
    """Make a secret for webhooks, unless there is one, and an empty file for the token."""
    secretfiles.create(secret_file(project), secrets.token_urlsafe(32))
    secretfiles.create(token_file(project))
