# SPDX-License-Identifier: BSD-2-Clause
"""Archives for the kernel's initramfs: cpio of the format `newc`.

Documentation/driver-api/early-userspace/buffer-format.rst of Linux has the format.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


class Archive:
    """An archive in which root owns everything."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.number = 0
        self.there: set[str] = set()

    def add(self, name: str, mode: int, data: bytes = b"", modified: int = 0) -> None:
        """Adds an entry, last modified that many seconds after 1970, with its parent directories unless they are
        there.
        """
        above, _, _ = name.rpartition("/")
        if above and above not in self.there:
            self.add(above, stat.S_IFDIR | 0o755)
        if name in self.there:
            return
        self.there.add(name)
        self.number += 1
        self._write(name, self.number, mode, data, modified)

    def copy(self, source: Path, name: str) -> None:
        """Adds a file, a directory or a link of this machine; no program keeps its set-user-ID bit.

        Files keep their modification time: Python uses its compiled files only if they name that of the source (PEP
        552). Otherwise it would compile everything that it imports after each boot.
        """
        status = source.lstat()
        mode = status.st_mode & ~(stat.S_ISUID | stat.S_ISGID)
        if stat.S_ISLNK(mode):
            self.add(name, mode, os.fsencode(source.readlink()))
        elif stat.S_ISREG(mode):
            self.add(name, mode, source.read_bytes(), int(status.st_mtime))
        elif stat.S_ISDIR(mode):
            self.add(name, mode)

    def close(self) -> None:
        """Writes the end of the archive."""
        self._write("TRAILER!!!", 0, 0, b"", 0)
        self.file.close()

    def _write(self, name: str, number: int, mode: int, data: bytes, modified: int) -> None:
        encoded = os.fsencode(name) + b"\0"
        fields = (number, mode, 0, 0, 1, modified, len(data), 0, 0, 0, 0, len(encoded), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
        self.file.write(_padded(head) + _padded(data))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
