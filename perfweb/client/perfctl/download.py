# SPDX-License-Identifier: BSD-2-Clause
"""Downloads files, continues interrupted downloads, and verifies archives by their own checksums."""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPResponse
from pathlib import Path
from typing import IO

from perfctl.server import Refused, Server, ServerError

CHUNK = 1 << 16
ATTEMPTS = 5
SUMS = "SHA256SUMS"
LARGEST_SUMS = 64 << 20


class DamagedError(Exception):
    """The downloaded file is damaged."""


def download(server: Server, path: str, target: Path) -> None:
    """Write the file at a path of the server to `target`.

    The file grows in `TARGET.part`, with the server's entity tag in `TARGET.part.etag`. If both exist already, only the
    rest is requested (RFC 9110 sections 13.1.5 and 14); the server sends everything if the file has changed. Raises
    ServerError after repeated interruptions, and OSError.
    """
    part, tag = Path(f"{target}.part"), Path(f"{target}.part.etag")
    for attempt in range(1, ATTEMPTS + 1):
        before = part.stat().st_size if part.exists() else 0
        try:
            _fetch(server, path, part, tag)
            break
        except Refused:
            raise
        except ServerError:
            grown = part.exists() and part.stat().st_size > before
            if attempt == ATTEMPTS or not grown or not tag.exists():
                raise
    part.replace(target)
    tag.unlink(missing_ok=True)


def _fetch(server: Server, path: str, part: Path, tag: Path) -> None:
    have = part.stat().st_size if part.exists() and tag.exists() else 0
    headers = {"Range": f"bytes={have}-", "If-Range": tag.read_text(encoding="ascii")} if have else {}
    try:
        with server.open(path, headers) as answer:
            begin = _begin(answer, have)
            _remember(answer, tag)
            _append(answer, part, begin)
    except Refused as error:
        # All bytes were there already, and only the rename was missing, or the file is shorter now.
        if error.status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not have:
            raise
        tag.unlink()
        _fetch(server, path, part, tag)


def _begin(answer: HTTPResponse, have: int) -> int:
    """Return the offset at which the response begins."""
    if answer.status != HTTPStatus.PARTIAL_CONTENT:
        return 0
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    if not found or int(found[1]) != have:
        raise ServerError(f"the server sent other bytes than the requested ones, from {have} on")
    return have


def _remember(answer: HTTPResponse, tag: Path) -> None:
    """Store a strong entity tag, which continuing a download requires."""
    etag = answer.headers.get("ETag", "")
    if etag.startswith('"') and etag.isascii():
        tag.write_text(etag, encoding="ascii")
    else:
        tag.unlink(missing_ok=True)


def _append(answer: HTTPResponse, part: Path, begin: int) -> None:
    announced = answer.headers.get("Content-Length")
    with part.open("r+b" if begin else "wb") as file:
        file.seek(begin)
        while chunk := answer.read(CHUNK):
            file.write(chunk)
        file.truncate()
        got = file.tell() - begin
    if announced is not None and str(got) != announced.strip():
        raise ServerError(f"the connection broke after {got} of {announced} bytes")


def check_archive(archive: Path) -> int:
    """Compare the files of an archive with its SHA256SUMS, and return their number. Raises DamagedError."""
    sums: dict[str, str] = {}
    promised: dict[str, str] = {}
    try:
        with archive.open("rb") as file:
            for name, size in _members(file, archive.stat().st_size):
                if name in sums or (promised and name == SUMS):
                    raise DamagedError(f"{archive} is damaged: {name} is there twice")
                if name == SUMS:
                    lines = (line.partition("  ") for line in _content(file, size).decode().splitlines())
                    promised = {path: digest for digest, _, path in lines}
                else:
                    sums[name] = _sha256(file, size)
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise DamagedError(f"{archive} is damaged: {error}") from None
    if wrong := sorted(name for name in promised.keys() | sums.keys() if promised.get(name) != sums.get(name)):
        raise DamagedError(f"{archive} is damaged: {', '.join(wrong[:5])} differs from SHA256SUMS")
    return len(sums)


def _members(file: IO[bytes], length: int) -> Iterator[tuple[str, int]]:
    """Yield name and size of each member; its content is next in the file.

    tarfile would trust the headers: a negative size leads back, extended headers are read into memory, and the
    zeros of a sparse file have no end. The server writes plain ustar headers of regular files.
    """
    while (block := file.read(tarfile.BLOCKSIZE)).strip(b"\0"):
        member = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        begin = file.tell()
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise tarfile.ReadError(f"{member.name} is no regular file")
        if not 0 <= member.size <= length - begin:
            raise tarfile.ReadError(f"{member.name} has {member.size} bytes in its header, and {length - begin} follow")
        yield member.name.partition("/")[2], member.size
        file.seek(begin + member.size + -member.size % tarfile.BLOCKSIZE)
    if not block:
        raise EOFError("its end is missing")


def _content(file: IO[bytes], size: int) -> bytes:
    if size > LARGEST_SUMS:
        raise tarfile.ReadError(f"{SUMS} has {size} bytes; {LARGEST_SUMS} are the limit")
    return file.read(size)


def _sha256(file: IO[bytes], size: int) -> str:
    digest = hashlib.sha256()
    while size and (chunk := file.read(min(size, CHUNK))):
        size -= len(chunk)
        digest.update(chunk)
    return digest.hexdigest()
