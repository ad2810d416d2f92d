# SPDX-License-Identifier: BSD-2-Clause
"""Archives that a stranger's program has made: of them come files and directories, and nothing that leads elsewhere."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

TOTAL_LIMIT = 256 * 1024 * 1024
"""Bytes of all files together, however small the archive makes them."""
MEMBER_LIMIT = 10_000


class StrangeArchiveError(ValueError):
    """The archive holds what it must not; the message says what."""


def unpack(archive: IO[bytes], directory: Path) -> None:
    """Puts what is in a tar archive below an empty directory, which belongs to the caller, as all in it will.

    A link may name its neighbour, as libraries do; no other link, device or pipe is taken, and of a mode only whether
    the file can be executed.  Raises StrangeArchiveError, and then something of it may be there.
    """
    total = 0
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for count, member in enumerate(tar):
                total += member.size
                if count >= MEMBER_LIMIT or total > TOTAL_LIMIT:
                    raise StrangeArchiveError(f"more than {MEMBER_LIMIT} files, or more than {TOTAL_LIMIT} bytes")
                _put(tar, member, directory)
    except (tarfile.TarError, EOFError, UnicodeError, OverflowError) as error:
        raise StrangeArchiveError(f"it is no archive: {error}") from None
    except OSError as error:
        raise StrangeArchiveError(f"{error.strerror or error}: {str(error.filename)[-200:]!r}") from None


def _put(tar: tarfile.TarFile, member: tarfile.TarInfo, directory: Path) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\0" in member.name:
        raise StrangeArchiveError(f"{member.name[-200:]!r} is a path that leads out of it")
    target = directory / path
    if member.isdir():
        target.mkdir(mode=0o755, exist_ok=True)
    elif member.isreg():
        content = tar.extractfile(member)
        # An existing file, or a link of that name, is not written through.
        with target.open("xb") as file:
            if content is not None:
                shutil.copyfileobj(content, file)
        target.chmod(0o755 if member.mode & 0o111 else 0o644)
    elif member.issym() and PurePosixPath(member.linkname).name == member.linkname != "..":
        target.symlink_to(member.linkname)
    else:
        raise StrangeArchiveError(f"{member.name[-200:]!r} is neither a file, a directory, nor a link to a neighbour")
