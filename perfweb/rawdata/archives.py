# SPDX-License-Identifier: BSD-2-Clause
"""Tar archives with reproducible bytes, so that a download can continue in the middle.

The format is that of POSIX (pax, IEEE Std 1003.1-2017); a member is a header of 512 bytes and its content, padded to a
multiple of 512. Times are those of the data, owners are root, and the order is fixed. The length is the sum of the
members', each of which is known before it is written: the database has those of texts. Tables are written once to
measure them, and the result is cached.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial

from perfweb.runs.models import Artefact

MANIFEST = "SHA256SUMS"
_BLOCK = tarfile.BLOCKSIZE
_PIECE = 1 << 20


class ChangedError(RuntimeError):
    """The content of a member has changed since the start of the archive; the download has to be started again."""


@dataclass(frozen=True)
class Measure:
    """The length of a member, and its hash."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Member:
    """A file of an archive; `pieces` reads it from its beginning."""

    name: str
    measure: Measure
    pieces: Callable[[], Iterator[bytes]]


def text_member(name: str, content: bytes) -> Member:
    """A member that is in memory."""
    return Member(name, Measure(len(content), hashlib.sha256(content).hexdigest()), lambda: iter([content]))


def artefact_member(key: int, name: str, size: int, sha256: str) -> Member:
    """A member with an artefact, which is read when it is written."""
    return Member(name, Measure(size, sha256), partial(_artefact, key))


def _artefact(key: int) -> Iterator[bytes]:
    yield bytes(Artefact.objects.values_list("content", flat=True).get(pk=key))


@dataclass(frozen=True)
class Written:
    """A generated member; `identity` changes when its content does."""

    identity: str
    pieces: Callable[[], Iterator[bytes]] = field(compare=False)


@lru_cache(maxsize=4096)
def measured(written: Written) -> Measure:
    """Write it once to learn its size and its hash."""
    size, digest = 0, hashlib.sha256()
    for piece in written.pieces():
        size += len(piece)
        digest.update(piece)
    return Measure(size, digest.hexdigest())


@dataclass(frozen=True)
class Archive:
    """A folder of members, which ends with a list of their hashes for `sha256sum -c SHA256SUMS`."""

    folder: str
    time: datetime
    members: list[Member]

    @property
    def length(self) -> int:
        """The number of bytes."""
        return sum(len(self._header(member)) + _padded(member.measure.size) for member in self._all()) + 2 * _BLOCK

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """Write it from an offset on; members before the offset are not read."""
        for member in self._all():
            header = self._header(member)
            length = len(header) + _padded(member.measure.size)
            if start < length:
                yield from skipped(_checked(header, member), start)
            start = max(0, start - length)
        yield bytes(2 * _BLOCK)[start:]

    def _all(self) -> list[Member]:
        sums = "".join(f"{member.measure.sha256}  {member.name}\n" for member in self.members)
        return [*self.members, text_member(MANIFEST, sums.encode())]

    def _header(self, member: Member) -> bytes:
        entry = tarfile.TarInfo(f"{self.folder}/{member.name}")
        entry.size, entry.mtime, entry.mode = member.measure.size, int(self.time.timestamp()), 0o644
        entry.uname = entry.gname = "root"
        return entry.tobuf(tarfile.PAX_FORMAT)


def _checked(header: bytes, member: Member) -> Iterator[bytes]:
    """Write the member with its padding. Raises ChangedError instead of writing content that does not match the
    header.
    """
    yield header
    left = member.measure.size
    for piece in member.pieces():
        left -= len(piece)
        if left < 0:
            break
        yield piece
    if left:
        raise ChangedError(f"{member.name} changed while it was downloaded")
    yield bytes(-member.measure.size % _BLOCK)


def skipped(pieces: Iterable[bytes], count: int) -> Iterator[bytes]:
    """Skip the first `count` bytes."""
    for piece in pieces:
        if count < len(piece):
            yield piece[count:]
        count = max(0, count - len(piece))


def unique_names(names: Iterable[str]) -> list[str]:
    """Turn names into different paths that are safe to unpack.

    Revisions and imported tests may have any name. A path has only letters, digits and . _ + -, begins with a letter or
    digit in each part, and never contains `..`.
    """
    found: dict[str, None] = {}
    for name in names:
        parts = (re.sub(r"[^A-Za-z0-9._+-]", "_", part).lstrip(".-") for part in name.split("/"))
        path = "/".join(part for part in parts if part) or "_"
        number = 1
        while (unique := path if number == 1 else f"{path}.{number}") in found:
            number += 1
        found[unique] = None
    return list(found)


def _padded(size: int) -> int:
    return size + -size % _BLOCK
