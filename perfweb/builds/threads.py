# SPDX-License-Identifier: BSD-2-Clause
"""Finds one series in the mbox of a whole thread, which also has replies and other versions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message

from perfweb.builds.mails import PatchError, header, parse_mail, read_mail, read_subject, without_crlf
from perfweb.builds.patches import ENVELOPE
from perfweb.inputlimits import THREAD_MAILS

_ID = re.compile(r"<([^<>\s]{1,250})>")


@dataclass(frozen=True)
class _Letter:
    """A mail of a thread. `series` is equal in all mails of a series, but also in those of two with the same numbers;
    `parent` is the Message-ID that the mail answers. `is_part` is set for patches and covers, `is_cover` for covers.
    """

    raw: bytes
    key: str
    parent: str
    series: tuple[int, int | None, str]
    is_part: bool
    is_cover: bool


def series_in(thread: bytes, message_id: str) -> bytes:
    """Return the mails, as mbox, of the series that a mail of a thread belongs to. If the mail is a reply, the series
    is that which it discusses. Raises PatchError.
    """
    letters: dict[str, _Letter] = {}
    for letter in _letters(without_crlf(thread)):
        letters.setdefault(letter.key, letter)
    part = _part(letters, message_id.strip().removeprefix("<").removesuffix(">"))
    if part.series[1] is None:
        return part.raw
    roots = _roots(letters)
    return b"".join(
        letter.raw for letter in letters.values() if letter.is_part and roots[letter.key] == roots[part.key]
    )


def _letters(thread: bytes) -> list[_Letter]:
    starts = list(ENVELOPE.finditer(thread))
    if not starts or thread[: starts[0].start()].strip():
        raise PatchError("This is no mbox. Send the thread as its archive has it, such as t.mbox of a public-inbox.")
    if len(starts) > THREAD_MAILS:
        raise PatchError(f"This thread has {len(starts)} mails; the max is {THREAD_MAILS}. Send the series alone.")
    ends = [found.start() for found in starts[1:]] + [len(thread)]
    return [_letter(thread[start.start() : end], start.end() - start.start())
            for start, end in zip(starts, ends, strict=True)]  # fmt: skip


def _letter(raw: bytes, envelope: int) -> _Letter:
    message = parse_mail(raw[envelope:])
    subject = read_subject(message)
    numbered = subject.number is not None
    return _Letter(
        raw=raw,
        key=_last_id(message, "Message-ID"),
        parent=_last_id(message, "In-Reply-To") or _last_id(message, "References"),
        series=(subject.version, subject.total, header(message, "From").casefold()),
        is_part=not subject.reply and (numbered or bool(read_mail(raw[envelope:]).patch.diff)),
        is_cover=subject.number == 0,
    )


def _last_id(message: Message, name: str) -> str:
    found = _ID.findall(header(message, name))
    return found[-1] if found else ""


def _part(letters: Mapping[str, _Letter], key: str) -> _Letter:
    """Return a mail, or the first one above it that is a patch or a cover letter."""
    letter = letters.get(key)
    if letter is None:
        raise PatchError(f"The thread has no mail <{key}>. Give the Message-ID of one of its patches or covers.")
    for _ in letters:
        if letter is None or letter.is_part:
            break
        letter = letters.get(letter.parent)
    if letter is None or not letter.is_part:
        raise PatchError(f"<{key}> is neither a patch nor a reply to one. Give the Message-ID of a patch.")
    return letter


def _roots(letters: Mapping[str, _Letter]) -> dict[str, tuple[object, ...]]:
    """Return what all mails of a series share: its numbers, its sender, and its cover letter, which the archive may
    lack; without one, the mail that the first patch answers, or that patch.
    """
    roots: dict[str, tuple[object, ...]] = {}
    for letter in letters.values():
        path, last, above = {letter.key}, letter, _above(letters, letter)
        while above and above.key not in path and above.key not in roots:
            path.add(above.key)
            last, above = above, _above(letters, above)
        own = (*last.series, last.key if last.is_cover else last.parent or last.key)
        root = roots.get(above.key, own) if above else own
        roots.update(dict.fromkeys(path, root))
    return roots


def _above(letters: Mapping[str, _Letter], letter: _Letter) -> _Letter | None:
    """Return the mail of the same series that a mail answers."""
    above = letters.get(letter.parent)
    return above if above and above.is_part and above.series == letter.series and not letter.is_cover else None
