# SPDX-License-Identifier: BSD-2-Clause
"""Packs Ansible's modules with their bytecode.

A host gets a module as a zip file with the sources of all that it imports. Compiling them on each call takes longer
than the work of most modules. A host with the guard gets only the list of these files, because the guard runs what is
installed: 20 KB for a call instead of half a megabyte.
"""

import contextlib
import hashlib
import importlib.metadata
import marshal
import os
import shutil
import struct
import sys
import time
import zipfile
import zlib
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
SOURCES = ("library", "module_utils")
"""Folders of the playbooks that Ansible packs."""
UNUSED_SECONDS = 30 * 24 * 3600
"""Seconds after which a store with which no server was started is removed."""
UNFINISHED = (".lock", "-part")
"""Ends of the names of files that Ansible uses while it packs."""

UNCHECKED_HASH = 0b01
"""Flags of a .pyc file (PEP 552): it is valid without a check of the source."""


class Packed(zipfile.ZipFile):
    """A zip file with the bytecode of each source.

    zipimport prefers the bytecode, and takes the source if its Python has another version.
    """

    def writestr(self, zinfo_or_arcname: zipfile.ZipInfo | str, data: Any, *options: Any, **more: Any) -> None:
        """Adds a file, as ZipFile does."""
        super().writestr(zinfo_or_arcname, data, *options, **more)
        file = zinfo_or_arcname if isinstance(zinfo_or_arcname, str) else zinfo_or_arcname.filename
        if file.endswith(".py"):
            code = marshal.dumps(compile(data, file, "exec", dont_inherit=True))
            super().writestr(f"{file}c", MAGIC_NUMBER + struct.pack("<L8x", UNCHECKED_HASH) + code)


class Listed(zipfile.ZipFile):
    """A zip file without content: its directory has the size and the checksum of each file, which the guard compares
    with the installed ones (playbooks/guard.py).
    """

    def writestr(self, zinfo_or_arcname: zipfile.ZipInfo | str, data: Any, *options: Any, **more: Any) -> None:
        """Adds a file, as ZipFile does, but not its content."""
        content = data.encode() if isinstance(data, str) else data
        super().writestr(zinfo_or_arcname, b"", *options, **more)
        entry = self.filelist[-1]
        entry.file_size, entry.CRC = len(content), zlib.crc32(content)


GUARDED = "GUARDED"
"""The value of `ansible_module_compression` in the inventory for hosts that have the guard."""


def _archive(file: Any, mode: Any, compression: Any) -> zipfile.ZipFile:
    """Opens an archive with a compression, which is an attribute of _Zipfile."""
    return Listed(file, mode) if compression == GUARDED else Packed(file, mode, compression)


class _Zipfile:
    """What Ansible's packing uses of the module zipfile, and one more compression."""

    ZipFile = staticmethod(_archive)
    GUARDED = GUARDED
    ZipInfo = zipfile.ZipInfo
    ZIP_STORED = zipfile.ZIP_STORED
    ZIP_DEFLATED = zipfile.ZIP_DEFLATED


def install() -> None:
    """Makes the imported Ansible pack with bytecode."""
    sys.modules["ansible.executor.module_common"].zipfile = _Zipfile  # type: ignore[attr-defined]


class Store:
    """What servers have packed, below `home`, for later ones: packing takes several CPU seconds.

    `temporary` is Ansible's directory for local files of this server, where Ansible looks for packed modules. They are
    hard links to those of the store, which is only a cache: without space nothing is stored. A stored file has the hash
    of its content in its name. A loss of power can leave it empty or cut off, and Ansible would fail on it in each
    play: a file whose content has another hash is removed, and the module packed again.
    """

    def __init__(self, home: Path, temporary: Path) -> None:
        self.key = key(PLAYBOOKS)
        self.stored, self.own = home / "packed" / self.key, temporary / "ansiballz_cache"
        with contextlib.suppress(OSError):
            self.own.mkdir()
            self.stored.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.utime(self.stored)
            self._take()
            for other in self.stored.parent.iterdir():
                if other.stat().st_mtime < time.time() - UNUSED_SECONDS:
                    shutil.rmtree(other, ignore_errors=True)

    def _take(self) -> None:
        for path in self.stored.iterdir():
            name, _, digest = path.name.rpartition("@")
            if name and digest == _digest(path):
                with contextlib.suppress(FileExistsError):  # two servers have packed the module at the same time
                    (self.own / name).hardlink_to(path)
            else:
                path.unlink(missing_ok=True)

    def keep(self) -> None:
        """Stores what has been packed, unless a module has changed since the server was started."""
        with contextlib.suppress(OSError):
            if key(PLAYBOOKS) != self.key:
                return
            for path in self.own.iterdir():
                if not path.name.endswith(UNFINISHED):
                    with contextlib.suppress(FileExistsError):
                        (self.stored / f"{path.name}@{_digest(path)}").hardlink_to(path)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def key(playbooks: Path) -> str:
    """The name of a store: a hash of the modules, of this file, and of the versions of Ansible and Python."""
    made_of = hashlib.sha256(importlib.metadata.version("ansible-core").encode() + MAGIC_NUMBER)
    paths = [Path(__file__), *(path for folder in SOURCES for path in sorted((playbooks / folder).rglob("*.py")))]
    for path in paths:
        made_of.update(f"\0{path}\0".encode() + path.read_bytes())
    return made_of.hexdigest()[:32]
