# SPDX-License-Identifier: BSD-2-Clause
"""Directories for UNIX sockets, whose names the kernel limits (unix(7))."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

SOCKET_PATH_LIMIT = 107
"""Max bytes in sun_path besides its terminating zero."""
CONTROL_NAME_LENGTH = 10 + 1 + 16
"""Ansible's names of ssh control sockets have 10 characters; ssh appends a dot and 16 characters while it makes one."""


class UnsafeDirectoryError(RuntimeError):
    """A directory that must be private belongs to, or is writable by, another user."""


def require_private(directory: Path) -> None:
    """Refuses a directory that another user could write to."""
    status = directory.lstat()
    if directory.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise UnsafeDirectoryError(
            f"{directory} is not a directory that only you can write to: remove it and start again"
        )


def socket_directory(wanted: Path, longest_name: int) -> Path:
    """Returns a directory for sockets whose names have at most `longest_name` bytes.

    That is `wanted` if its path is short enough. Otherwise it is a short path under XDG_RUNTIME_DIR or the temporary
    directory, always the same for the same `wanted`, and `wanted` becomes a link to it.
    """
    wanted = Path(os.path.abspath(wanted))
    if len(os.fsencode(wanted)) + 1 + longest_name <= SOCKET_PATH_LIMIT:
        wanted.mkdir(parents=True, exist_ok=True, mode=0o755)
        return wanted
    name = "perfweb-" + hashlib.sha256(os.fsencode(wanted)).hexdigest()[:12]
    short = Path(os.environ.get("XDG_RUNTIME_DIR", tempfile.gettempdir())) / name
    short.mkdir(mode=0o711, exist_ok=True)
    require_private(short)
    wanted.parent.mkdir(parents=True, exist_ok=True)
    if wanted.is_symlink() and wanted.readlink() != short:  # made with another temporary directory
        wanted.unlink()
    if not wanted.is_symlink():
        wanted.symlink_to(short)
    return short
