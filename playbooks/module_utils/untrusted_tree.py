# SPDX-License-Identifier: BSD-2-Clause
"""Copies a directory tree that an untrusted program has written.

No archive is involved, so no header can have false sizes, names or types: the program has ended, and root reads its
directory itself. Nothing is opened through a symbolic link (open(2), O_NOFOLLOW), and bytes and entries are counted as
they are written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

BYTES_LIMIT = 256 * 1024 * 1024
"""Max bytes of all files together; a hole in a file counts, because the copy has none."""
ENTRY_LIMIT = 10_000
DEPTH_LIMIT = 32
"""Max levels of directories, because code that walks the copy may recurse."""
NAME_LIMIT = 255
PATH_LIMIT = 1024
"""Max bytes of a name, and of a path below the copy (PATH_MAX is 4096)."""

_CHUNK = 1024 * 1024
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class UntrustedTreeError(ValueError):
    """The tree holds something that cannot be copied; the message has its path and the reason."""


def copy_tree(source: Path, target: Path) -> None:
    """Copies what is below `source` into `target`, which must not exist and will belong to the caller.

    Copies regular files, directories, and symbolic links to a name in the same directory; of the mode only whether a
    file is executable. Nothing may change `source` meanwhile. Raises UntrustedTreeError, or OSError if `target` cannot
    be written; then there is no `target`.
    """
    target.mkdir()
    try:
        with _opened(source) as directory, _opened(target) as copy:
            os.fchmod(copy, 0o755)
            _Copy().fill(directory, copy, "", 1)
    except BaseException:
        shutil.rmtree(target)
        raise


@contextlib.contextmanager
def _opened(path: str | Path, parent: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, _LOOK | os.O_DIRECTORY, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class _Copy:
    """What has been copied so far."""

    def __init__(self) -> None:
        self.bytes = 0
        self.entries = 0

    def fill(self, source: int, target: int, path: str, depth: int) -> None:
        """Copies the entries of an open directory at `path`, which is `depth` levels deep."""
        with os.scandir(source) as entries:
            for entry in entries:
                self.entries += 1
                inside = f"{path}{entry.name}"
                _check_name(entry.name, inside)
                if self.entries > ENTRY_LIMIT:
                    raise UntrustedTreeError(f"{inside!r}: there are more than {ENTRY_LIMIT} files and directories")
                self._copy(entry, source, target, inside, depth)

    def _copy(self, entry: os.DirEntry[str], source: int, target: int, path: str, depth: int) -> None:
        kind = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(kind):
            self._copy_directory(entry.name, source, target, path, depth)
        elif stat.S_ISREG(kind):
            self._copy_file(entry.name, source, target, path)
        elif stat.S_ISLNK(kind):
            link = os.readlink(entry.name, dir_fd=source)
            if "/" in link or link in {".", ".."}:
                raise UntrustedTreeError(f"{path!r} is a link to {link[-200:]!r}: only one to a neighbour is allowed")
            _check_name(link, f"{path} -> {link}")
            os.symlink(link, entry.name, dir_fd=target)
        else:
            raise UntrustedTreeError(f"{path!r} is neither a file, a directory, nor a link to a neighbour")

    def _copy_directory(self, name: str, source: int, target: int, path: str, depth: int) -> None:
        if depth >= DEPTH_LIMIT:
            raise UntrustedTreeError(f"{path[-200:]!r}: directories are nested deeper than {DEPTH_LIMIT} levels")
        os.mkdir(name, dir_fd=target)
        with _opened(name, source) as directory, _opened(name, target) as copy:
            os.fchmod(copy, 0o755)
            self.fill(directory, copy, f"{path}/", depth + 1)

    def _copy_file(self, name: str, source: int, target: int, path: str) -> None:
        def create(file: str, flags: int) -> int:
            return os.open(file, flags | os.O_NOFOLLOW, 0o644, dir_fd=target)

        # Non-blocking, because a FIFO put in the file's place would wait for a writer.
        reader = os.open(name, _LOOK | os.O_NONBLOCK, dir_fd=source)
        with open(reader, "rb", buffering=0) as file, open(name, "xb", opener=create) as copy:
            mode = os.fstat(reader).st_mode
            while chunk := file.read(_CHUNK):
                self.bytes += len(chunk)
                if self.bytes > BYTES_LIMIT:
                    raise UntrustedTreeError(f"{path!r}: the files have more than {BYTES_LIMIT} bytes")
                copy.write(chunk)
            os.fchmod(copy.fileno(), 0o755 if mode & 0o111 else 0o644)


def _check_name(name: str, path: str) -> None:
    """Raises UntrustedTreeError for a name that could mislead the reader of a log or is too long for a file system."""
    if not name.isprintable() or len(os.fsencode(name)) > NAME_LIMIT:
        raise UntrustedTreeError(f"{path[-200:]!r}: a name is at most {NAME_LIMIT} bytes of printable UTF-8")
    if len(os.fsencode(path)) > PATH_LIMIT:
        raise UntrustedTreeError(f"{path[-200:]!r}: a path has more than {PATH_LIMIT} bytes")
