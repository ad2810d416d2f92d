# SPDX-License-Identifier: BSD-2-Clause
"""Reads patches in their usual forms: a unified diff, a mail of `git format-patch`, or an mbox with a series of them.

Nothing is applied here and no file is touched: git determines the changes of a patch (perfweb.builds.repositories).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from email.policy import Compat32

from perfweb.inputlimits import (
    MAIL_CONTAINERS,
    MAIL_HEADER_CHARACTERS,
    MAIL_HEADERS,
    MAIL_PARTS,
    MAIL_REFERENCES_CHARACTERS,
    PATCH_BYTES,
    PATCH_LINES,
    SERIES_PATCHES,
)

LONGEST_TITLE = 200
_NO_TEXT = {
    "text/html", "application/pgp-signature", "application/pgp-keys", "application/pkcs7-signature",
    "application/x-pkcs7-signature",
}  # fmt: skip
"""Parts besides the text of a mail: HTML alternatives, and signatures (RFC 3156, RFC 8551)."""
CRLF = b"\r\n"

# The rule of git-mailsplit(1): a time with seconds, then a year. The atomic group searches for the time once, because
# without it a line of n times took n squared steps.
_ENVELOPE = re.compile(rb"^From (?>[^\n]*?\d:\d\d:\d\d) +\d{4}[^\n:]*\n", re.MULTILINE)
_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]*:[ \t]")
_DIFF = re.compile(rb"^(?:diff --git |--- [^\n]+\n\+\+\+ )", re.MULTILINE)
_BINARY = re.compile(rb"^(?:GIT binary patch$|Binary files .* differ$)", re.MULTILINE)
_BRACKETS = re.compile(r"\s*(?:\[[^\]]*\]\s*)+")
# The last match counts: [PATCH 6.12/7 1/2]. A letter may precede it: [PATCH1/8].
_NUMBER = re.compile(r"(?<![\d./vV])(\d{1,3})/(\d{1,3})(?![\d/]|\.\d)", re.ASCII)
# [PATCH v2], [PATCHv2], [RFC V2], but neither [PATCH ipv6] nor [PATCH v6.12].
_VERSION = re.compile(
    r"(?:PATCH|RFC|RFT|RESEND|SERIES|(?<![A-Za-z0-9]))v(\d{1,3})(?![\d.])",
    re.ASCII | re.IGNORECASE,
)
_REPLY = re.compile(r"(?:re|aw|fwd?|antw)\s*:", re.IGNORECASE)
_BASE = re.compile(rb"^base-commit: ([0-9a-f]{40})\s*$", re.MULTILINE)
_IN_BODY_HEADER = re.compile(rb"(From|Subject|Date):([^\n]*(?:\n[ \t][^\n]*)*)\n", re.IGNORECASE)
_END_OF_MESSAGE = re.compile(rb"^(?:---|diff --git .*|--- .*)$", re.MULTILINE)


class PatchError(ValueError):
    """The text has no patch that can be measured; the message has the reason and what to send instead."""


@dataclass(frozen=True)
class Patch:
    """One patch; author and message are empty for a bare diff."""

    subject: str
    author: str
    message: str
    diff: bytes


@dataclass(frozen=True)
class Series:
    """Patches in order; `base` is the commit for which the sender made them, or empty."""

    title: str
    cover: str
    base: str
    patches: tuple[Patch, ...]


@dataclass(frozen=True)
class Subject:
    """The subject of a mail: `[PATCH v2 3/7] net: faster`, or that it is a reply."""

    brackets: str
    text: str
    version: int
    number: int | None
    total: int | None
    reply: bool


@dataclass(frozen=True)
class Mail:
    """A message with its patch. `body` is its whole text, decoded."""

    subject: Subject
    patch: Patch
    body: bytes


def read_series(content: bytes) -> Series:
    """Return the patches of a submitted text. Raises PatchError only."""
    content = _readable(content)
    mails = [read_mail(raw) for raw in _messages(content)]
    if not mails:
        diff = _diff_of(content)
        if not diff:
            raise PatchError(
                "This has no diff. Send the complete output of `git format-patch --stdout BASE` or `git diff BASE`."
            )
        return Series("", "", _base_in(content), (Patch("", "", "", diff),))
    covers = [mail for mail in mails if not mail.patch.diff and not mail.subject.reply]
    found = [mail for mail in mails if mail.patch.diff and not mail.subject.reply]
    patches = tuple(mail.patch for mail in _in_order(found))
    cover = next((mail.patch for mail in covers if mail.subject.number == 0), None)
    return Series(
        title=(cover or patches[0]).subject,
        cover=cover.message if cover else "",
        base=_base_in(content),
        patches=patches,
    )


def _readable(content: bytes) -> bytes:
    """Return the text with LF line ends; a form and some mailers make CRLF of them."""
    if len(content) > PATCH_BYTES:
        raise PatchError(f"This has {len(content)} bytes; the max is {PATCH_BYTES}. Remove generated files.")
    if (lines := count_lines(content)) > PATCH_LINES:
        raise PatchError(f"This has {lines} lines; the max is {PATCH_LINES}. Remove generated files.")
    if b"\0" in content:
        raise PatchError("This holds a NUL byte, so it is no text. Send a diff as text, not compressed.")
    if content.count(b"\n") == content.count(CRLF):
        content = content.replace(CRLF, b"\n")
    if _BINARY.search(content):
        raise PatchError("This changes a binary file. A patch of the stack changes text; leave the file out.")
    return content.lstrip(b"\n").rstrip(b"\n") + b"\n"


def count_lines(content: bytes) -> int:
    """Return the number of lines as Python's mail parser counts them: LF, CR and CRLF each end one."""
    return content.count(b"\n") + content.count(b"\r") - content.count(CRLF)


def _messages(content: bytes) -> Iterator[bytes]:
    """Return the mails of an mbox, or the one mail; none if this is a bare diff."""
    starts = list(_ENVELOPE.finditer(content))
    if starts and starts[0].start() == 0:
        ends = [found.start() for found in starts[1:]] + [len(content)]
        if len(ends) > 2 * SERIES_PATCHES:
            raise PatchError(f"This holds {len(ends)} mails. Send one series, of {SERIES_PATCHES} patches at most.")
        yield from (content[start.end() : end] for start, end in zip(starts, ends, strict=True))
    elif _HEADER.match(content) and not content.startswith(b"Index:"):
        yield content


def read_mail(raw: bytes) -> Mail:
    """Parse one mail, and append the text of its attachments to its own. Raises PatchError and nothing else."""
    try:
        return _read_mail(parse_mail(raw))
    except PatchError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, MessageError):  # defects that the email package found
        raise PatchError("This mail is malformed. Send the output of `git format-patch --stdout BASE`.") from None


def _read_mail(message: Message) -> Mail:
    body = b"\n".join(_texts(message)).replace(CRLF, b"\n")
    subject = read_subject(message)
    named, text = _in_body_headers(body)
    ending = _END_OF_MESSAGE.search(text)
    patch = Patch(
        subject=_without_tags(named.get("subject", "")) or subject.text or "(no subject)",
        author=named.get("from") or header(message, "From"),
        message=text[: ending.start() if ending else None].decode("utf-8", "replace").strip(),
        diff=_diff_of(body),
    )
    return Mail(subject, patch, body)


def _in_body_headers(text: bytes) -> tuple[dict[str, str], bytes]:
    """Return author, subject and date from the first lines of a text (see git-mailinfo(1)), and the rest.

    They belong to the patch when another person sends it. Each is read once; any other line ends them.
    """
    found, rest = dict[str, str](), text.lstrip(b"\n")
    while (line := _IN_BODY_HEADER.match(rest)) and (name := line.group(1).decode().lower()) not in found:
        found[name] = _decoded(line.group(2).decode("utf-8", "replace"))
        rest = rest[line.end() :]
    return found, rest if found else text


def _without_tags(subject: str) -> str:
    tags = _BRACKETS.match(subject)
    return subject[tags.end() :] if tags else subject


class _Limits(Compat32):
    """Counts the parser's calls for one mail, and stops it at the limits; `counts` is that of this mail."""

    counts: Counter[str] = Counter()

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        kind = name.lower()
        self.count("headers", MAIL_HEADERS)
        if kind == "content-type" and value.lstrip().lower().startswith("multipart/"):
            self.count("parts that contain others", MAIL_CONTAINERS)
        return name, value[: MAIL_REFERENCES_CHARACTERS if kind in _REFERENCES else MAIL_HEADER_CHARACTERS]

    def count(self, what: str, most: int) -> None:
        self.counts[what] += 1
        if self.counts[what] > most:
            raise PatchError(f"This mail has more than {most} {what}. Send the patch as plain text, one in a mail.")


_REFERENCES = {"references", "in-reply-to"}


def parse_mail(raw: bytes) -> Message:
    """Headers and parts of a mail.  Raises PatchError for one that exceeds the limits of perfweb.inputlimits."""
    limits = _Limits(counts=Counter())  # type: ignore[call-arg]  # a policy takes the names of its attributes

    def part(policy: Compat32 = limits) -> Message:
        limits.count("parts", MAIL_PARTS)
        return Message(policy)

    return BytesParser(part, policy=limits).parsebytes(raw)


def read_subject(message: Message) -> Subject:
    """Split the subject of a mail."""
    whole = header(message, "Subject")
    tags = _BRACKETS.match(whole)
    brackets = tags.group() if tags else ""
    number, version = _last(_NUMBER, brackets), _last(_VERSION, brackets)
    return Subject(
        brackets=brackets.strip(),
        text=whole[len(brackets) :],
        version=int(version.group(1)) if version else 1,
        number=int(number.group(1)) if number else None,
        total=int(number.group(2)) if number else None,
        reply=_REPLY.match(whole) is not None,
    )


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(reversed(list(pattern.finditer(text))), None)


def _texts(message: Message) -> Iterator[bytes]:
    """Return the text of a mail and its attachments, each decoded."""
    for part in message.walk():
        if part.is_multipart() or part.get_content_type() in _NO_TEXT:
            continue
        try:
            content = part.get_payload(decode=True)
        except (ValueError, LookupError, MessageError):
            raise PatchError("A part of this mail cannot be decoded. Send it as plain text.") from None
        if isinstance(content, bytes):
            if b"\0" in content or _BINARY.search(content):
                raise PatchError("This mail has something binary attached. Send patches as text.")
            yield content


def header(message: Message, name: str) -> str:
    """Return a header as one line of text, also if it has no declared encoding."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    try:  # bytes that are UTF-8 without an encoding: format.encodeEmailHeaders=false
        raw = raw.encode("ascii", "surrogateescape").decode("utf-8")
    except UnicodeError:
        raw = str(message.get(name, ""))
    return _decoded(raw)


def _decoded(raw: str) -> str:
    """One line of a text that has encoded words (RFC 2047)."""
    try:
        return _plain(str(make_header(decode_header(raw))))
    except (LookupError, ValueError, MessageError):
        return _plain(raw)


def _plain(text: str) -> str:
    """Return one line without characters that a terminal or a page would interpret."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    words = "".join(letter if letter.isprintable() else " " for letter in text).split()
    return " ".join(words)[:LONGEST_TITLE]


def _diff_of(content: bytes) -> bytes:
    """Return the text from the first line of a diff to the end; git itself skips what follows the last hunk."""
    begins = _DIFF.search(content)
    return content[begins.start() :] if begins else b""


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
