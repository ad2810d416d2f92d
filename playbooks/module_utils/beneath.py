# SPDX-License-Identifier: BSD-2-Clause
"""Opens files below a directory so that no name leads out of it: no symbolic link, no `..`, no absolute path.

Each directory on the way is opened relative to the one before and never through a link (openat(2), O_NOFOLLOW), as
openat2(2) does with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS. What is checked is what is opened, so a directory
exchanged in between has no effect. The walk works on every kernel that Python supports.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def directory(root: str | Path, relative: str | Path = "", *, make: bool = False) -> Iterator[int]:
    """Returns a descriptor of a directory `relative` to `root`; `make` makes missing ones, writable by root alone.

    `root` itself may be reached by links: the caller chose it. Raises OSError, with ELOOP for a name that leads out.
    """
    parts = _parts(relative)
    descriptor = os.open(root, _DIRECTORY & ~os.O_NOFOLLOW)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=descriptor)
            below = os.open(part, _DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _parts(relative: str | Path) -> list[str]:
    """Returns the parts of a relative path; each is a plain name."""
    words = str(relative)
    parts = words.split("/") if words else []
    if any(part in {"", ".", ".."} or "\0" in part for part in parts):
        raise OSError(errno.ELOOP, "a path that leads out of its directory", words)
    return parts


@contextmanager
def opened(root: str | Path, relative: str | Path, flags: int, mode: int = 0o644) -> Iterator[int]:
    """Returns a descriptor of the regular file `relative` to `root`. Raises OSError."""
    above, _, name = str(relative).rpartition("/")
    _parts(name)
    with directory(root, above) as descriptor:
        safe = flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # opening a FIFO must not block
        file = os.open(name, safe, mode, dir_fd=descriptor)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(relative))
        yield file
    finally:
        os.close(file)


def read_text(root: str | Path, relative: str | Path, most: int = 16 * 1024 * 1024) -> str:
    """Returns the text of a file of at most `most` bytes. Raises OSError."""
    content = b""
    with opened(root, relative, os.O_RDONLY) as descriptor:
        # In steps, because the kernel allocates a buffer of the requested size for a setting.
        while step := os.read(descriptor, 1 << 16):
            content += step
            if len(content) > most:
                raise OSError(errno.EFBIG, f"more than {most} bytes", str(relative))
    return content.decode("utf-8", "replace")


def write_text(root: str | Path, relative: str | Path, content: str, *, make: bool = False) -> None:
    """Writes a file in one write; with `make` it may be a new one. Raises OSError."""
    flags = os.O_WRONLY | (os.O_CREAT | os.O_TRUNC if make else 0)
    with opened(root, relative, flags) as descriptor:
        data = content.encode()
        if os.write(descriptor, data) != len(data):  # a sysctl takes a whole write or nothing
            raise OSError(errno.EIO, "written in part", str(relative))


def identity(path: str | Path) -> str:
    """Returns device and inode of an absolute path without links, "none" if it does not exist. Raises OSError."""
    parts = _parts(absolute(path))
    try:
        with directory("/", "/".join(parts[:-1])) as above:
            found = os.stat(parts[-1], dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return "none"
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "a symbolic link", str(path))
    return f"{found.st_dev}:{found.st_ino}"


def require_no_links(path: str | Path) -> None:
    """Raises OSError if an absolute path contains a symbolic link, also at its end; it need not exist."""
    identity(path)


def absolute(path: str | Path) -> str:
    """Makes an absolute path relative to /, for a file to which no link may lead. Raises OSError."""
    words = str(path)
    if not words.startswith("/"):
        raise OSError(errno.ELOOP, "not an absolute path", words)
    return words[1:]
