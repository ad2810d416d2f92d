# SPDX-License-Identifier: BSD-2-Clause
"""Reads one mail with a patch: author, subject, message and diff are those of git-mailinfo(1), byte for byte.

Exceptions: parts of HTML, pictures and detached signatures are left out; a mail that has only HTML gives the words
between its tags, and never a patch. The dashes of clear-signed text are removed (RFC 9580, section 7). A base64 text
whose lines end with CR LF has LF instead. Characters that are not printable become spaces in authors and subjects,
which end after LONGEST_TITLE characters. A charset that is unknown or wrong is guessed as git guesses a missing one,
where git refuses the mail.
"""

import binascii
import codecs
import html
import quopri
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import MessageError
from email.message import Message
from email.parser import BytesParser
from email.policy import Compat32

from perfweb.inputlimits import (
    MAIL_CONTAINERS,
    MAIL_HEADER_CHARACTERS,
    MAIL_HEADERS,
    MAIL_PARTS,
    MAIL_REFERENCES_CHARACTERS,
)

LONGEST_TITLE = 200
LONGEST_NAME = 60
CRLF = b"\r\n"
_HTML = "text/html"
_NO_TEXT = {
    _HTML, "application/pgp-signature", "application/pgp-keys", "application/pkcs7-signature",
    "application/x-pkcs7-signature",
}  # fmt: skip
"""Parts beside the text of a mail: what a program shows instead, and signatures (RFC 3156, RFC 8551)."""
_NO_TEXTS = {"image", "audio", "video", "font"}
"""Kinds of parts that are never a patch, such as the logo below a signature."""
_NO_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
"""Codecs of Python that are no charsets of mail, and may take more than linear time."""
_ENCODING = "Content-Transfer-Encoding"
_ENCODINGS = ("base64", "quoted-printable")
_REFERENCES = {"references", "in-reply-to"}

_DIFF = re.compile(rb"^(?:diff --git |--- [^\n]+\n\+\+\+ )", re.MULTILINE)
_BINARY = re.compile(rb"^(?:GIT binary patch$|Binary files .* differ$)", re.MULTILINE)
_PATCH_BREAK = re.compile(rb"^(?:diff -|Index: |--- [^\s]|---[ \t\r\f\v]*\n)", re.MULTILINE)
_LF_LINE = re.compile(
    rb"^(?:(?:diff -|index [0-9a-f]|Index: )[^\r\n]*|\+\+\+ [^\r\n]*\n@@ [^\n]*|@@ -[\d,]+ \+[\d,]+ @@[^\r\n]*)\n",
    re.MULTILINE,
)
"""Lines that a diff program writes itself, not those of a file, with LF at their end."""
_HUNK = re.compile(rb"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_SIGNS = {b"", b" ", b"+", b"-", b"\\"}
# What git takes off the beginning of a subject: tags, replies and colons.
_TAGS = re.compile(r"(?:[ :]|re:|\[[^\]]*\])*", re.IGNORECASE)
# The last one counts: [PATCH 6.12/7 1/2]. A letter may stand before it: [PATCH1/8]. Mercurial writes [PATCH 1 of 8].
_NUMBER = re.compile(r"(?<![\d./vV])(\d{1,3})(?: ?/ ?|[ -]?of[ -]?)(\d{1,3})(?![\d/]|\.\d)", re.ASCII | re.IGNORECASE)
# [PATCH v2], [PATCHv2], [RFC V2], [PATCH ver. 2], [PATCH 1/2v2], but neither [PATCH ipv6] nor [PATCH v6.12].
_VERSION = re.compile(
    r"(?:PATCH|RFC|RFT|RESEND|SERIES|NEXT|/\d{1,3}|(?<![A-Za-z0-9]))(?:v|ver|rev|version)\.? ?(\d{1,3})(?![\d.]|/\d)",
    re.ASCII | re.IGNORECASE,
)
# Mail programs translate Re: and Fwd:. Short words count before a tag only, because subjects of patches have such, too.
_REPLY = re.compile(
    r"(?:(?:re(?:\[\d{1,3}\])?|aw|antw(?:ort)?|fwd?|回复|答复|回覆|转发)\s*[:\uff1a]|(?:sv|vs|wg|tr|r|rif|odp|ynt|vl)\s*:\s*\[)",
    re.IGNORECASE,
)
_TAG = re.compile(r"\[[^\]]*\]\s*")
_NAMED = re.compile(r"\b(?:PATCH|RFC)", re.IGNORECASE)
_ENCODED_WORD = re.compile(r"=\?([^?]*)\?([bq])\?", re.IGNORECASE)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_IN_BODY_HEADER = re.compile(r"(From|Subject|Date):([^\n]*(?:\n[ \t][^\n]*)*)\n?", re.IGNORECASE)
_IN_BODY_SUBJECT = re.compile(r"\[PATCH\]\s([^\n]*)\n?")
_IN_BODY_ENVELOPE = re.compile(r">From [0-9a-f]{40} Mon Sep 17 00:00:00 2001\n")
_HTML_LINE = re.compile(r"<(?:br|/?(?:p|div|li|tr|pre|blockquote|h[1-6]))\b[^<>]*>", re.IGNORECASE)
_HTML_TAG = re.compile(r"<[^<>]*>")
_SIGNED_TEXT = b"-----BEGIN PGP SIGNED MESSAGE-----\n"
_SIGNATURE = b"-----BEGIN PGP SIGNATURE-----\n"


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
class Subject:
    """The subject of a mail: `[PATCH v2 3/7] net: faster`; `reply` is set if it is one of a reply."""

    brackets: str
    text: str
    version: int
    number: int | None
    total: int | None
    reply: bool


@dataclass(frozen=True)
class Mail:
    """A message with its patch. `body` is all its text: transfer encodings undone, and what precedes the diff in UTF-8.
    `flowed` is set if its mail program may have broken or joined lines (RFC 3676), `only_html` if its text is HTML.
    """

    subject: Subject
    patch: Patch
    body: bytes
    flowed: bool = False
    only_html: bool = False


class _Limits(Compat32):
    """Counts what the parser makes of one mail, and stops it at the limits; `counts` is that of this mail."""

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


def parse_mail(raw: bytes) -> Message:
    """Headers and parts of a mail.  Raises PatchError for one that exceeds the limits of perfweb.inputlimits."""
    limits = _Limits(counts=Counter())  # type: ignore[call-arg]  # a policy takes the names of its attributes

    def part(policy: Compat32 = limits) -> Message:
        limits.count("parts", MAIL_PARTS)
        return Message(policy)

    return BytesParser(part, policy=limits).parsebytes(raw)


def read_mail(raw: bytes) -> Mail:
    """One mail, with the text of its attachments behind its own.  Raises PatchError and nothing else."""
    try:
        return _read_mail(parse_mail(raw))
    except PatchError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, MessageError):  # warning of the email package
        raise PatchError("This mail is malformed. Send the output of `git format-patch --stdout BASE`.") from None


def _read_mail(message: Message) -> Mail:
    html_words = _words_of_html(message)
    words, rest, flowed = html_words, b"", False
    behind = b"\n" if message.is_multipart() else b""  # git keeps the line end that belongs to the boundary
    for part in _text_parts(message):
        flowed |= _is_flowed(part)
        content = _content(part) + behind
        if not rest:
            broken = _PATCH_BREAK.search(content)
            end = broken.start() if broken else len(content)
            words += _text(content[:end], str(part.get_content_charset("")))
            content = content[end:]
        rest += content
    subject, diff = read_subject(message), diff_of(rest)
    named, text = _in_body_headers(words)
    inner = named if diff else {}  # as for git, a mail without a diff has none
    patch = Patch(
        subject=_without_tags(inner.get("subject", "")) or subject.text or "(no subject)",
        author=author(inner.get("from") or header(message, "From")),
        message=text.strip("\n"),
        diff=diff,
    )
    return Mail(subject, patch, words.encode("utf-8", "replace") + rest, flowed, only_html=bool(html_words))


def diff_of(content: bytes) -> bytes:
    """From the first line of a diff to the end; git itself skips what follows the last hunk."""
    begins = _DIFF.search(content)
    return content[begins.start() :] if begins else b""


def has_binary(content: bytes) -> bool:
    """Whether a text changes a file that is no text."""
    return _BINARY.search(content) is not None


def is_whole(diff: bytes) -> bool:
    """Whether every hunk of a diff has as many lines as its head counts."""
    old = new = 0
    for line in diff.split(b"\n"):
        if old > 0 or new > 0:
            sign = line[:1]
            if sign not in _SIGNS:
                return False
            old -= sign not in {b"+", b"\\"}
            new -= sign not in {b"-", b"\\"}
        elif head := _HUNK.match(line):
            old, new = (int(head[group] or 1) for group in (1, 2))
    return old == new == 0


# Headers


def header(message: Message, name: str) -> str:
    """A header as one line of text, also where its encoding is none; of several the last one, as git reads them."""
    raw = [str(value) for key, value in message.raw_items() if key.lower() == name.lower()]
    # Bytes that are not ASCII have no encoding (format.encodeEmailHeaders=false).
    return _decoded(_text(raw[-1].encode("utf-8", "surrogateescape"), "")) if raw else ""


def read_subject(message: Message) -> Subject:
    """The subject of a mail in its parts."""
    whole = header(message, "Subject")
    text = _without_tags(whole)
    brackets = whole[: len(whole) - len(text)]
    number, version = _last(_NUMBER, brackets), _last(_VERSION, brackets)
    first = _TAG.match(whole)  # [External] Re: [PATCH] x
    behind = whole[first.end() :] if first and not _NAMED.search(first.group()) else whole
    return Subject(
        brackets=brackets.strip(),
        text=text,
        version=int(version.group(1)) if version else 1,
        number=int(number.group(1)) if number else None,
        total=int(number.group(2)) if number else None,
        reply=_REPLY.match(whole) is not None or _REPLY.match(behind) is not None,
    )


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(reversed(list(pattern.finditer(text))), None)


def author(sender: str) -> str:
    """Name and address of a header From, without quotes and comments, as git names the author of a commit."""
    text = _QUOTED.sub(lambda found: re.sub(r"\\(.)", r"\1", found.group(1)), sender)
    at = text.find("@")
    if at < 0:
        name, _, address = text.partition("<")
        return _named(name.strip(), address.partition(">")[0]) if address else text
    begin = max(text.rfind(mark, 0, at) for mark in (" ", "<")) + 1
    end = next((place for place in range(at, len(text)) if text[place] in " >"), len(text))
    name = " ".join(f"{text[: max(begin - 1, 0)]} {text[end + 1 :]}".split())
    if name.startswith("(") and name.endswith(")"):
        name = name[1:-1]
    return _named(name, text[begin:end])


def _named(name: str, address: str) -> str:
    """git takes the address for a name that is empty, too long, or has another address in it."""
    sane = 0 < len(name.encode("utf-8", "replace")) <= LONGEST_NAME and not set("@<>") & set(name)
    return f"{name if sane else address} <{address}>"


def _decoded(raw: str) -> str:
    """One line of a text that has encoded words (RFC 2047), also within other words, as mail programs write them."""
    raw = raw[:MAIL_HEADER_CHARACTERS]
    pieces, place, after_word = list[tuple[str, bytes | str]](), 0, False
    while word := _ENCODED_WORD.search(raw, place):
        end = raw.find("?=", word.end())
        content = _undone(word.group(2), raw[word.end() : end]) if end >= 0 else None
        if content is None:
            break
        between = raw[place : word.start()]
        if between.strip() or (between and not after_word):
            pieces.append(("", between))
        charset = word.group(1).partition("*")[0].lower()
        if pieces and pieces[-1][0] == charset and isinstance(last := pieces[-1][1], bytes):
            pieces[-1] = (charset, last + content)  # a character may be in two words
        else:
            pieces.append((charset, content))
        place, after_word = end + 2, True
    text = "".join(piece if isinstance(piece, str) else _text(piece, charset) for charset, piece in pieces)
    return _plain(text + raw[place:])


def _undone(encoding: str, text: str) -> bytes | None:
    """The bytes of an encoded word; None if its encoding is wrong."""
    raw = text.encode("utf-8", "replace")
    if encoding.lower() == "q":
        return quopri.decodestring(raw.replace(b"\n", b" "), header=True)
    try:
        return binascii.a2b_base64(raw + b"==")
    except binascii.Error:
        return None


def _plain(text: str) -> str:
    """One line without what a terminal or a page could take for more than text."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    words = "".join(letter if letter.isprintable() else " " for letter in text).split()
    return " ".join(words)[:LONGEST_TITLE]


def _in_body_headers(text: str) -> tuple[dict[str, str], str]:
    """Author, subject and date that the first lines of a text have, and what follows.

    They are those of the patch where another person sends it. Each is taken once; anything else ends them.
    """
    found, place = dict[str, str](), len(text) - len(text.lstrip("\n"))
    while True:
        if line := _IN_BODY_ENVELOPE.match(text, place):
            pass
        elif line := _IN_BODY_SUBJECT.match(text, place):
            found["subject"] = _decoded(line.group(1))
        elif (line := _IN_BODY_HEADER.match(text, place)) and (name := line.group(1).lower()) not in found:
            found[name] = _decoded(line.group(2))
        else:
            return found, text[place:]
        place = line.end()


def _without_tags(subject: str) -> str:
    tags = _TAGS.match(subject)
    return subject[tags.end() :].strip() if tags else subject


# Text


def _text_parts(message: Message) -> Iterator[Message]:
    for part in message.walk():
        left_out = part.get_content_type() in _NO_TEXT or part.get_content_maintype() in _NO_TEXTS
        if not part.is_multipart() and not left_out:
            yield part


def _words_of_html(message: Message) -> str:
    """The words of a mail that has no other text than HTML, without tags, in the lines that a reader sees."""
    if next(_text_parts(message), None) is not None:
        return ""
    parts = [part for part in message.walk() if part.get_content_type() == _HTML]
    text = "".join(_text(_content(part), str(part.get_content_charset(""))) for part in parts)
    words = _HTML_TAG.sub("", _HTML_LINE.sub("\n", text.replace("\n", " ")))
    return "\n".join(line.strip() for line in html.unescape(words).splitlines())


def _content(part: Message) -> bytes:
    """The text of a part with LF at the end of its lines, its transfer encoding undone."""
    written = str(part.get(_ENCODING, "")).lower()  # git finds the name also with quotes, blanks or a comment
    if encoding := next((name for name in _ENCODINGS if name in written), ""):
        part.replace_header(_ENCODING, encoding)
    try:
        content = part.get_payload(decode=True)
    except (ValueError, LookupError, MessageError):
        raise PatchError("A part of this mail cannot be decoded. Send it as plain text.") from None
    if not isinstance(content, bytes):
        return b""
    if b"\0" in content or has_binary(content):
        raise PatchError("This mail has something binary attached. Send patches as text.")
    content = without_crlf(content)
    if _is_flowed(part):
        content = _unflowed(content, delsp=str(part.get_param("delsp", "")).lower() == "yes")
    return _without_dashes(content)


def without_crlf(content: bytes) -> bytes:
    """A text whose line ends were made CR LF, with LF instead; a patch of a file with CR LF as it is.

    Mail (RFC 5321, section 2.3.8) and forms (multipart/form-data) make all line ends CR LF. Programs on the way add
    lines with LF, such as headers and the footers of lists. git prints the lines around those of a file with LF, so
    that a patch of a file with CR LF has both.
    """
    return content if _LF_LINE.search(content) else content.replace(CRLF, b"\n")


def _is_flowed(part: Message) -> bool:
    return str(part.get_param("format", "")).lower() == "flowed"


def _unflowed(content: bytes, *, delsp: bool) -> bytes:
    """The lines of format=flowed (RFC 3676) as they were before a mail program broke them."""
    pieces = list[bytes]()
    flowing = False
    for line in content.splitlines(keepends=True):
        if line.rstrip(b"\r\n") == b"-- ":
            pieces += [b"\n", line] if flowing else [line]
            flowing = False
            continue
        text = line.removeprefix(b" ")
        flowing = text.rstrip(b"\r\n").endswith(b" ")
        if flowing:
            text = text.rstrip(b"\r\n")
            text = text[:-1] if delsp else text
        pieces.append(text)
    return b"".join(pieces)


def _without_dashes(content: bytes) -> bytes:
    """The text of a clear-signed message (RFC 9580, section 7); any other text as it is."""
    before, begin, signed = content.partition(_SIGNED_TEXT)
    text, end, _ = signed.partition(_SIGNATURE)
    if not begin or not end:
        return content
    text = text.partition(b"\n\n")[2]  # behind its header Hash
    return before + re.sub(rb"^- ", b"", text, flags=re.MULTILINE)


def _text(content: bytes, charset: str) -> str:
    """Bytes as text; those that are not in the charset, line by line in UTF-8 or Latin-1, as git guesses."""
    try:
        if charset and codecs.lookup(charset).name not in _NO_CHARSETS:
            return content.decode(charset)
    except (LookupError, ValueError):
        pass
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "".join(_guessed(line) for line in content.splitlines(keepends=True))


def _guessed(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")
