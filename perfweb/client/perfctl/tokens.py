# SPDX-License-Identifier: BSD-2-Clause
"""The token of the user on a server: from PERFCTL_TOKEN, or from a file that only its owner can read."""

from __future__ import annotations

import ipaddress
import json
import os
from pathlib import Path
from urllib.parse import urlsplit


class TokenError(ValueError):
    """The token cannot be used or stored safely; the message has what to do."""


def path() -> Path:
    """Return the file of tokens, which are stored by the address of their server."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "perfctl" / "tokens.json"


def find(address: str) -> str:
    """Return the token for a server, or "". Raises TokenError for a file that others can read."""
    if given := os.environ.get("PERFCTL_TOKEN", "").strip():
        return given
    return _kept().get(address, "")


def keep(address: str, token: str) -> Path:
    """Store a token for a server, readable for this user only. Raises TokenError or OSError."""
    check_encrypted(address)
    file = path()
    kept = {**_kept(), address: token}
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as opened:
        json.dump(kept, opened, indent=1)
    new.replace(file)
    return file


def check_encrypted(address: str) -> None:
    """Refuse to send a token over an unencrypted connection. Raises TokenError."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not _is_here(parts.hostname or ""):
        raise TokenError(f"a token is not sent to {address}, where others could read it: use https")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _kept() -> dict[str, str]:
    file = path()
    try:
        with file.open(encoding="ascii") as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise TokenError(f"others can read {file}: chmod 600 {file}, and make new tokens")
            kept = json.load(opened)
    except FileNotFoundError:
        return {}
    except TokenError:
        raise
    except ValueError:
        kept = None
    if not isinstance(kept, dict) or not all(isinstance(token, str) for token in kept.values()):
        raise TokenError(f"{file} is damaged: remove it, and log in again")
    return kept
