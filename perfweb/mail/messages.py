# SPDX-License-Identifier: BSD-2-Clause
"""Parses one mail: its claimed sender, its place in a series, and its request.

Nothing is stored here. A mail is parsed, or IgnoredError has the reason why it is ignored, or its `problem` is its
error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.errors import MessageError
from email.header import Header
from email.message import Message as Headers
from email.utils import getaddresses

from perfweb.builds.mails import (
    Mail,
    PatchError,
    Subject,
    diff_of,
    header,
    is_whole,
    parse_mail,
    read_mail,
    read_subject,
    without_crlf,
)
from perfweb.builds.patches import ENVELOPE, count_lines
from perfweb.inputlimits import MAIL_BYTES, MAIL_LINES, MAIL_REFERENCES_CHARACTERS, PATCH_BYTES, SERIES_PATCHES
from perfweb.mail import automatic, proof
from perfweb.plaintext import plain
from perfweb.submissions import commands

PREFIX = "perf:"
MOST_PARENTS = 50
MOST_RESULTS = 20
_OWN_ENVELOPE = b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"

_ID = re.compile(r"<[!-;=?-~]{1,160}@[!-;=?A-~]{1,80}>", re.ASCII)
_ADDRESS = r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9.-]{1,180}"
_COMMENT = r"(?:\s*\((?:[^()]|\([^()]*\))*\))?"
_FROM = re.compile(
    rf'(?:(?:"(?:[^"\\]|\\.)*"\s*|[^"<>@]*)<({_ADDRESS})>{_COMMENT}|({_ADDRESS}){_COMMENT})', re.IGNORECASE | re.DOTALL
)
_LIST = re.compile(r"<([a-z0-9._-]{1,200})>\s*$", re.IGNORECASE)
_PATCH = re.compile(r"\b(?:PATCH|RFC)", re.IGNORECASE)
_RELAYED = re.compile(r"\bvia\b", re.IGNORECASE)
_OF_LISTS = ("list-", "mailing-list", "x-mailing-list", "x-beenthere")
MOST_REPLY_TO = 3
_COMMIT_MAIL = re.compile(rb"^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001\n", re.MULTILINE)


class IgnoredError(ValueError):
    """The mail is ignored without an answer; the message has the reason, for the log."""


@dataclass(frozen=True)
class Rules:
    """The configuration of mail: the service's address, the server whose Authentication-Results are trusted, and the
    accepted lists by List-Id, with their addresses for copies.
    """

    address: str = ""
    server: str = ""
    lists: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Message:
    """A mail: a patch, the cover letter of a series, or something else.

    `parents` are the messages that it answers, the oldest first. `proven` means that the domain of `sender` signed it.
    `reply_to` are the addresses for responses, `copy_to` is that of the list that it came from. `is_patch` means that
    it is part of a series: its subject begins with [PATCH] or with its number, or it has a diff and a request; `title`
    is the rest of the subject. `number` and `total` are None if the subject has none. `request` is the text after
    `perf:`, and `mbox` the input of perfweb.builds.patches.
    """

    id: str
    parents: tuple[str, ...]
    sender: str
    proven: bool
    reply_to: tuple[str, ...]
    copy_to: str
    subject: str
    title: str
    is_patch: bool
    version: int
    number: int | None
    total: int | None
    request: str
    mbox: bytes
    problem: str


def read_message(content: bytes, rules: Rules, envelope_sender: str | None = None) -> Message:
    """Parse a mail, byte for byte as received. Raises IgnoredError and nothing else."""
    if len(content) > MAIL_BYTES:
        raise IgnoredError(f"it has {len(content)} bytes; the max is {MAIL_BYTES}")
    if (lines := count_lines(content)) > MAIL_LINES:
        raise IgnoredError(f"it has {lines} lines; the max is {MAIL_LINES}")
    content = without_crlf(content)
    try:
        return _read(parse_mail(content), content, rules, envelope_sender)
    except IgnoredError:
        raise
    except PatchError as error:
        raise IgnoredError(str(error)) from None
    except (
        LookupError,
        TypeError,
        AttributeError,
        ValueError,
        MessageError,
    ):  # from the parser, for bytes that are not a mail
        raise IgnoredError("it is no mail that can be read") from None


def _read(headers: Headers, content: bytes, rules: Rules, envelope_sender: str | None) -> Message:
    ids = _ID.findall(_one(headers, "Message-ID"))
    if len(ids) != 1:
        raise IgnoredError("it has no Message-ID")
    written_by = _sender(headers)
    if why := automatic.reason(headers, rules.address, written_by, envelope_sender):
        raise IgnoredError(why)
    copy_to = _list_of(headers, rules)
    reply_to = _reply_to(headers, rules)
    sender = _author(headers, written_by, reply_to)
    problem, mail = "", None
    try:
        mail = read_mail(content)
        if len(mail.body) > PATCH_BYTES:
            raise PatchError(f"This has {len(mail.body)} bytes; the max is {PATCH_BYTES}. Remove generated files.")
    except PatchError as error:
        problem = str(error)
    request, twice = _request(mail, content)
    results = headers.get_all("Authentication-Results", [])[:MOST_RESULTS]
    signed = proof.signers(list(map(str, results)), rules.server)
    parents = [*_ID.findall(_all(headers, "References")), *_ID.findall(_all(headers, "In-Reply-To"))]
    inner = _COMMIT_MAIL.search(mail.body) if mail else None
    subject = read_subject(headers)
    if inner:  # git attached whole series, whatever the headers of the outer mail are
        subject = replace(subject, number=None, total=None)
    return Message(
        id=ids[0],
        parents=tuple(dict.fromkeys(parents))[-MOST_PARENTS:],
        sender=sender,
        # The signature of a relay or list proves its domain, not the author.
        proven=sender == written_by and sender.rpartition("@")[2] in signed and not _partly_signed(headers),
        reply_to=reply_to or (sender,),
        copy_to=copy_to,
        subject=header(headers, "Subject"),
        title=subject.text,
        is_patch=_is_patch(subject, mail, request),
        version=subject.version,
        number=subject.number,
        total=subject.total,
        request=plain(request),
        mbox=_as_mbox(mail) if mail and not problem else b"",
        problem=twice or problem or _why_not(mail, subject),
    )


def _is_patch(subject: Subject, mail: Mail | None, request: str) -> bool:
    if subject.reply:
        return False
    named = _PATCH.search(subject.brackets) is not None or subject.number is not None
    return named or bool(request and mail and mail.patch.diff)


def _reply_to(headers: Headers, rules: Rules) -> tuple[str, ...]:
    """Return the author's addresses for replies (RFC 5322, section 3.6.2), without lists and the service's own."""
    skipped = {rules.address.lower(), *(address.lower() for address in rules.lists.values())}
    found = (address.lower() for _, address in getaddresses([str(headers.get("Reply-To", ""))[:1000]]))
    good = (address for address in found if re.fullmatch(_ADDRESS, address) and not automatic.is_machine(address))
    return tuple(dict.fromkeys(address for address in good if address not in skipped))[:MOST_REPLY_TO]


def _author(headers: Headers, written_by: str, reply_to: Sequence[str]) -> str:
    """Return the author, also if a relay or list replaced the address in From: "Ada via list <list@example.org>"."""
    name = header(headers, "From").rpartition("<")[0]
    return reply_to[0] if len(reply_to) == 1 and _RELAYED.search(name) else written_by


def _sender(headers: Headers) -> str:
    """Return the only address in From. Two addresses, or two such headers, could impersonate another user."""
    found = _FROM.fullmatch(_one(headers, "From").strip())
    address = str(found.group(1) or found.group(2)).lower() if found else ""
    if not address or address.startswith("=?"):  # an encoded word, which no address may have (RFC 2047, 5)
        raise IgnoredError("its From is not one address of ASCII characters")
    return address


def _list_of(headers: Headers, rules: Rules) -> str:
    """Return the address of the list that the mail came from. Ignores mails of lists that are not configured
    (RFC 2369, RFC 2919). Lists also distribute mails of persons with `Precedence: bulk`, such as those of the kernel.
    """
    named = _LIST.search(_one(headers, "List-Id"))
    copy_to = rules.lists.get(named.group(1).lower(), "") if named else ""
    listed = any(name.lower().startswith(_OF_LISTS) for name in headers)
    precedence = set(automatic.values(headers, "Precedence"))
    if not copy_to and (listed or "list" in precedence):
        raise IgnoredError("it came by a list that is not set up here")
    if not copy_to and "bulk" in precedence:
        raise IgnoredError("its Precedence is bulk")
    return copy_to


def _request(mail: Mail | None, content: bytes) -> tuple[str, str]:
    """Return the request of the line `perf:` before the diff, and the error in it."""
    words = mail.body.removesuffix(mail.patch.diff) if mail else content
    try:
        found = commands.find(words.decode("utf-8", "replace"), PREFIX)
        return (found or commands.Verb.HELP if found is not None else ""), ""
    except commands.RequestError as error:
        return PREFIX, str(error)


def _why_not(mail: Mail | None, subject: Subject) -> str:
    """Return the error of parsing a patch; empty without one."""
    if mail is not None and mail.only_html and diff_of(mail.body):
        return (
            "Your mail has its text as HTML only, which changes the lines of a patch. Send it as plain text with "
            "git send-email."
        )
    if mail is None or not mail.patch.diff:
        return ""
    if mail.flowed and not is_whole(mail.patch.diff):
        return (
            "Your mail program has sent the patch as format=flowed and has changed its lines. Send it with "
            "git send-email, or attach it."
        )
    number, total = subject.number, subject.total
    if number is not None and total is not None and not 0 <= number <= total <= SERIES_PATCHES:
        return f"This is patch {number} of {total}; a series has {SERIES_PATCHES} patches at most, counted from 1."
    return ""


def _as_mbox(mail: Mail) -> bytes:
    """Return a decoded mail, or the attached mails as git made them."""
    attached = _COMMIT_MAIL.split(mail.body)[1:]
    if attached:
        return b"".join(_OWN_ENVELOPE + patch.strip(b"\n") + b"\n\n" for patch in attached)
    name, _, address = mail.patch.author.rpartition(" <")
    quoted = re.sub(r'(["\\])', r"\\\1", name)
    fields = {
        "From": f'"{quoted}" <{address}' if name else mail.patch.author,
        "Subject": f"{mail.subject.brackets} {mail.patch.subject}",
    }
    head = "".join(f"{name}: {Header(text, 'utf-8', maxlinelen=500).encode()}\n" for name, text in fields.items())
    body = ENVELOPE.sub(rb">\g<0>", mail.body)  # would begin another mail
    return _OWN_ENVELOPE + head.encode() + b"\n" + body.lstrip(b"\n").removesuffix(b"\n") + b"\n\n"


def _partly_signed(headers: Headers) -> bool:
    """Return whether a signature covers only the start of the text, so that an attacker could append to it."""
    return any(re.search(r"(?:^|;)\s*l\s*=", str(value)) for value in headers.get_all("DKIM-Signature", []))


def _one(headers: Headers, name: str) -> str:
    """Return the only header of a name; empty without one. Raises IgnoredError for more than one."""
    found = headers.get_all(name, [])
    if len(found) > 1:
        raise IgnoredError(f"it has {len(found)} headers {name}")
    return str(found[0]) if found else ""


def _all(headers: Headers, name: str) -> str:
    return " ".join(str(value) for value in headers.get_all(name, []))[:MAIL_REFERENCES_CHARACTERS]
