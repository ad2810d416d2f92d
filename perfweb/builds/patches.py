# SPDX-License-Identifier: BSD-2-Clause
"""Reads patches in their usual forms: a unified diff, a mail of `git format-patch`, or an mbox with a series of them.

Nothing is applied here and no file is touched: git determines the changes of a patch (perfweb.builds.repositories).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfweb.builds.mails import (
    CRLF,
    Mail,
    Patch,
    PatchError,
    diff_of,
    has_binary,
    read_mail,
    without_crlf,
)
from perfweb.inputlimits import PATCH_BYTES, PATCH_LINES, SERIES_PATCHES

__all__ = ["ENVELOPE", "Patch", "PatchError", "Series", "count_lines", "read_series"]

# As git-mailsplit(1) knows it: a time, then a year, and no colon behind them. The last time of the line counts, and is
# looked for once: without the atomic group a line of n times took n squared steps.
ENVELOPE = re.compile(rb"^From (?>[^\n]*\d[^\n]\d\d:\d\d)[ \t]*(?:9[1-9]|\d{3})[^\n:]*\n", re.MULTILINE)
_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]*:[ \t]")
_BASE = re.compile(rb"^base-commit: ([0-9a-f]{40})\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Series:
    """Patches in order; `base` is the commit for which the sender made them, or empty."""

    title: str
    cover: str
    base: str
    patches: tuple[Patch, ...]


def read_series(content: bytes) -> Series:
    """Return the patches of a submitted text. Raises PatchError only."""
    content = _readable(content)
    mails = [read_mail(raw) for raw in _messages(content)]
    if not mails:
        diff = diff_of(content)
        if not diff:
            raise PatchError(
                "This has no diff. Send the complete output of `git format-patch --stdout BASE` or `git diff BASE`."
            )
        return Series("", "", _base_in(content), (Patch("", "", "", diff),))
    own = [mail for mail in mails if not mail.subject.reply]
    covers = [mail for mail in own if not mail.patch.diff]
    found = [mail for mail in own if mail.patch.diff]
    patches = tuple(mail.patch for mail in _in_order(found))
    cover = next((mail.patch for mail in covers if mail.subject.number == 0), None)
    return Series(
        title=(cover or patches[0]).subject,
        cover=cover.message if cover else "",
        base=_base_in(b"\n".join(mail.body for mail in own)),
        patches=patches,
    )


def _readable(content: bytes) -> bytes:
    """Return the text with LF at its end. Raises PatchError for one that is no text of a limited size."""
    if len(content) > PATCH_BYTES:
        raise PatchError(f"This has {len(content)} bytes; the max is {PATCH_BYTES}. Remove generated files.")
    if (lines := count_lines(content)) > PATCH_LINES:
        raise PatchError(f"This has {lines} lines; the max is {PATCH_LINES}. Remove generated files.")
    if b"\0" in content:
        raise PatchError("This holds a NUL byte, so it is no text. Send a diff as text, not compressed.")
    content = without_crlf(content)
    if has_binary(content):
        raise PatchError("This changes a binary file. Patches change text only: leave the file out.")
    return content.lstrip(b"\n") + (b"" if content.endswith(b"\n") else b"\n")


def count_lines(content: bytes) -> int:
    """Return the number of lines as Python's mail parser counts them: LF, CR and CRLF each end one."""
    return content.count(b"\n") + content.count(b"\r") - content.count(CRLF)


def _messages(content: bytes) -> Iterator[bytes]:
    """Return the mails of an mbox, or the one mail; none if this is a bare diff."""
    starts = list(ENVELOPE.finditer(content))
    if starts and starts[0].start() == 0:
        ends = [found.start() for found in starts[1:]] + [len(content)]
        if len(ends) > 2 * SERIES_PATCHES:
            raise PatchError(f"This holds {len(ends)} mails. Send one series, of {SERIES_PATCHES} patches at most.")
        yield from (content[start.end() : end] for start, end in zip(starts, ends, strict=True))
    elif _HEADER.match(content) and not content.startswith(b"Index:"):
        yield content


def _base_in(content: bytes) -> str:
    """Return the commit of `git format-patch --base`."""
    found = set(_BASE.findall(content))
    if len(found) > 1:
        raise PatchError("The mails have two base commits. Send one series of one `git format-patch --base`.")
    return found.pop().decode() if found else ""


def _in_order(mails: Sequence[Mail]) -> list[Mail]:
    """Return the mails of a series in order; each number must occur once."""
    if not mails:
        raise PatchError(
            "None of these mails has a diff. Send the complete output of `git format-patch --stdout BASE`."
        )
    if len(mails) > SERIES_PATCHES:
        raise PatchError(f"This has {len(mails)} patches; the max is {SERIES_PATCHES}. Send only those to be measured.")
    versions = sorted({mail.subject.version for mail in mails})
    if len(versions) > 1:
        raise PatchError(f"This holds versions {versions[0]} and {versions[-1]} of a series. Send one of them.")
    if all(mail.subject.number is None for mail in mails):
        return list(mails)
    for mail in mails:
        if mail.subject.number is None or mail.subject.total != mails[0].subject.total:
            raise PatchError(f"“{mail.patch.subject}” is no part of the series that the others are. Send one series.")
    total = mails[0].subject.total or 0
    numbers = [mail.subject.number or 0 for mail in mails]
    for number in numbers:
        if not 1 <= number <= total or numbers.count(number) > 1:
            raise PatchError(f"Patch {number} of {total} is there {numbers.count(number)} times. Send each once.")
    if missing := sorted(set(range(1, total + 1)) - set(numbers)):
        raise PatchError(f"Patch {missing[0]} of {total} is missing. Send the whole series.")
    return sorted(mails, key=lambda mail: mail.subject.number or 0)
