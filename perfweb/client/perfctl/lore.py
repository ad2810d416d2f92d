# SPDX-License-Identifier: BSD-2-Clause
"""Threads of mails from a public-inbox, such as lore.kernel.org."""

from __future__ import annotations

import os
import re
import sys
import zlib
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request, urlopen

from perfctl.server import USER_AGENT
from perfctl.tables import plain
from perfctl.usage import UsageError

ADDRESS = os.environ.get("PERFCTL_LORE") or "https://lore.kernel.org/all/"
LARGEST = 16 << 20
"""Max bytes of a thread, compressed or not."""
SECONDS = 60.0

_ENVELOPE = re.compile(rb"^From (?=[^\n]*\d\d:\d\d:\d\d)", re.MULTILINE)


def thread_of(mail: str, archive: str) -> tuple[str, str]:
    """Return the mbox of the thread of a mail, and its Message-ID; `mail` is a Message-ID or an address of the mail in
    an archive. Raises UsageError.
    """
    archive, key = _in_archive(mail.strip(), archive)
    address = f"{archive}/{quote(key, safe='@')}/t.mbox.gz"
    return mbox_of(_read(address, key)), key


def _in_archive(mail: str, archive: str) -> tuple[str, str]:
    """Split https://lore.kernel.org/netdev/ID/T/#u into archive and ID."""
    if mail.startswith(("http://", "https://")):
        parts = urlsplit(mail)
        words = parts.path.split("/")
        where = next((number for number, word in enumerate(words) if "@" in unquote(word)), None)
        if where is None:
            raise UsageError(f"“{mail}” has no Message-ID: copy the address of the mail itself")
        return f"{parts.scheme}://{parts.netloc}{'/'.join(words[:where])}", unquote(words[where])
    key = mail.removeprefix("<").removesuffix(">")
    if "@" not in key:
        raise UsageError(f"“{mail}” is no Message-ID: it is in the mail's header, such as 20261101.4-1-ada@example.org")
    if urlsplit(archive).scheme not in {"http", "https"}:
        raise UsageError(f"“{archive}” is no address of an archive: write one like {ADDRESS}")
    return archive.rstrip("/"), key


def _read(address: str, key: str) -> bytes:
    try:
        with urlopen(Request(address, headers={"User-Agent": USER_AGENT}), timeout=SECONDS) as answer:  # noqa: S310
            content: bytes = answer.read(LARGEST + 1)
    except HTTPError as error:
        with error:
            missing = error.code in {404, 410}
        reason = f"has no mail <{key}>" if missing else f"answers {error.code} {error.reason}"
        raise UsageError(f"{address}: the archive {reason}") from None
    except (URLError, HTTPException, OSError) as error:
        raise UsageError(f"cannot read {address}: {getattr(error, 'reason', '') or error}") from None
    if len(content) > LARGEST:
        raise UsageError(f"{address} has more than {LARGEST} bytes")
    return content


def _unpacked(content: bytes) -> bytes:
    """Decompress (RFC 1952), to a limited size; servers and proxies may have done so already."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        thread = unpacker.decompress(content, LARGEST)
    except zlib.error:
        raise UsageError("the archive sent a damaged thread: try again") from None
    if not unpacker.eof:
        raise UsageError(f"the archive sent a thread that ends too early, or has more than {LARGEST} bytes")
    return thread


def mbox_of(content: bytes) -> str:
    """Unpack a thread; return its mails that are UTF-8, and name the others. Raises UsageError."""
    thread = _unpacked(content)
    if not _ENVELOPE.match(thread):
        raise UsageError("the archive sent no thread of mails: is it a public-inbox?")
    starts = [found.start() for found in _ENVELOPE.finditer(thread)]
    mails = [thread[start:end] for start, end in zip(starts, [*starts[1:], len(thread)], strict=True)]
    return "".join(filter(None, map(_mail, mails)))


def _mail(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        subject = re.search(rb"^Subject:([^\n]*)", raw, re.MULTILINE | re.IGNORECASE)
        named = subject[1].decode(errors="replace").strip() if subject else "no subject"
        print(f"perfctl: a mail is not UTF-8, and left out: {plain(named)}", file=sys.stderr)
        return ""
