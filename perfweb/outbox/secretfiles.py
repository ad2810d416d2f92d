# SPDX-License-Identifier: BSD-2-Clause
"""Secrets in files that only the service reads, so that no database dump has them."""

import os
from pathlib import Path

SHORTEST = 20


class SecretError(ValueError):
    """A secret is missing; the message names its file."""


def create(file: Path, content: str = "") -> None:
    """Create a file that only its owner can read; an existing one stays."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not file.exists():
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(content)


def read(file: Path) -> str:
    """Return a secret. Raises SecretError."""
    try:
        secret = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        secret = ""
    if len(secret) < SHORTEST:
        raise SecretError(f"{file} has to hold at least {SHORTEST} characters")
    return secret
