# SPDX-License-Identifier: BSD-2-Clause
"""Walks through an untrusted tar archive by headers, and accepts only plain files with plain names.

Python's tarfile follows links, extended headers and sparse maps, which archives of this service never have, and each of
which was the cause of vulnerabilities. Here every header is checked separately (IEEE Std 1003.1-2017, pax, "ustar
Interchange Format"), and everything unusual is refused with the name of the member and the reason. Nothing is ever
unpacked to the disk.
"""

from __future__ import annotations

import hashlib
import re
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

LARGEST_BUNDLE = 4 << 30
MOST_MEMBERS = 100_000
LONGEST_NAME = 256

_BLOCK = tarfile.BLOCKSIZE
_PIECE = 1 << 20
_PART = r"[A-Za-z0-9_+][A-Za-z0-9._+-]*"
_NAME = re.compile(rf"{_PART}(/{_PART})+", re.ASCII)
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a character device",
    tarfile.BLKTYPE: "a block device",
    tarfile.DIRTYPE: "a directory",
    tarfile.FIFOTYPE: "a pipe",
    tarfile.XHDTYPE: "an extended header",
    tarfile.XGLTYPE: "an extended header",
    tarfile.GNUTYPE_LONGNAME: "an extended header",
    tarfile.GNUTYPE_LONGLINK: "an extended header",
}


class BundleError(ValueError):
    """A bundle that is refused; the message names the member and the reason."""


@dataclass(frozen=True)
class Found:
    """A member: its name without the folder, the hash of its content, and the content if it was requested."""

    name: str
    sha256: str
    content: bytes | None


def walk(path: Path, limit: Callable[[str], int | None]) -> Iterator[Found]:
    """Yield the members of an archive, which are all in one folder.

    `limit` returns for a name how many bytes may be kept in memory, None for a member of which only the hash is needed.
    Raises BundleError, or OSError for a file that cannot be read.
    """
    with path.open("rb") as file:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise BundleError("it is no ordinary file")
        if status.st_size > LARGEST_BUNDLE:
            raise BundleError(f"it has {status.st_size} bytes; a bundle may have {LARGEST_BUNDLE}")
        if status.st_size % _BLOCK:
            raise BundleError(f"it is no whole tar archive: its length is no multiple of {_BLOCK} (is it compressed?)")
        folder, seen = "", set[str]()
        while (block := file.read(_BLOCK)) and block.strip(b"\0"):
            if len(seen) == MOST_MEMBERS:
                raise BundleError(f"there are more than {MOST_MEMBERS} members")
            name, size = _header(block, len(seen), status.st_size - file.tell())
            top, _, name = name.partition("/")
            folder = folder or top
            if top != folder:
                raise BundleError(f"{top}/{name} lies outside of {folder}/, where the first member is")
            if name in seen:
                raise BundleError(f"{name} is there twice")
            seen.add(name)
            yield _read(file, name, size, limit(name))
        if not block or file.read(_BLOCK).strip(b"\0"):
            raise BundleError("it does not end as a tar archive does: it was cut off or is damaged")


def _header(block: bytes, number: int, left: int) -> tuple[str, int]:
    """Return name and size of the member in a header, `left` bytes before the end of the file."""
    try:
        entry = tarfile.TarInfo.frombuf(block, "ascii", "strict")
    except (tarfile.TarError, ValueError) as error:
        raise BundleError(f"member {number}: this is no header of a tar archive ({error})") from None
    name = entry.name
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise BundleError(
            f"member {number}, {name[:LONGEST_NAME]!r}: a name is a relative path of letters, digits and . _ + -, "
            f"whose parts do not begin with a dot, with at most {LONGEST_NAME} characters"
        )
    if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        kind = _KINDS.get(entry.type, f"of the unknown type {entry.type!r}")
        raise BundleError(f"{name} is {kind}; a bundle has ordinary files only")
    if not 0 <= entry.size <= left:
        raise BundleError(
            f"{name} has a size of {entry.size} bytes in its header, but {max(left, 0)} are left in the file"
        )
    return name, entry.size


def _read(file: BinaryIO, name: str, size: int, limit: int | None) -> Found:
    if limit is not None and size > limit:
        raise BundleError(f"{name} has {size} bytes; at most {limit} are read")
    digest, kept, left = hashlib.sha256(), [], size
    while left:
        piece = file.read(min(left, _PIECE))
        if not piece:
            raise BundleError(f"{name} ends too early: the file became shorter while it was read")
        left -= len(piece)
        digest.update(piece)
        if limit is not None:
            kept.append(piece)
    file.read(-size % _BLOCK)
    return Found(name, digest.hexdigest(), b"".join(kept) if limit is not None else None)
