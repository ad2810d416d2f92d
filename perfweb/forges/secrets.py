# SPDX-License-Identifier: BSD-2-Clause
"""The two secrets of a project, each in a file that only the service reads, so that no database dump has them."""

import os
import secrets
from pathlib import Path

from django.conf import settings

from perfweb.forges.models import Project

SHORTEST = 20


class SecretError(ValueError):
    """A secret is missing; the message names its file."""


def token(project: Project) -> str:
    """The token of the forge's API.  Raises SecretError."""
    return _read(token_file(project))


def webhook_secret(project: Project) -> str:
    """The secret with which the forge signs webhooks.  Raises SecretError."""
    return _read(secret_file(project))


def token_file(project: Project) -> Path:
    return Path(settings.FORGE_SECRETS) / f"{project.mirror.name}.token"


def secret_file(project: Project) -> Path:
    return Path(settings.FORGE_SECRETS) / f"{project.mirror.name}.secret"


def make(project: Project) -> None:
    """Make a secret for webhooks, unless there is one, and an empty file for the token."""
    Path(settings.FORGE_SECRETS).mkdir(mode=0o700, parents=True, exist_ok=True)
    for file, content in ((secret_file(project), secrets.token_urlsafe(32)), (token_file(project), "")):
        if not file.exists():
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
                out.write(content)


def _read(file: Path) -> str:
    try:
        secret = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        secret = ""
    if len(secret) < SHORTEST:
        raise SecretError(f"{file} has to hold at least {SHORTEST} characters")
    return secret
