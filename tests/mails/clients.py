# SPDX-License-Identifier: BSD-2-Clause
"""The encodings of mail programs, lists and relays, applied to a mail that git has made."""

from __future__ import annotations

import base64
import quopri
import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.mails.changes import Change

Headers = dict[str, bytes]


@dataclass(frozen=True)
class Source:
    """A mail of git: the change, and the text behind its headers, in UTF-8."""

    change: Change
    body: bytes

    @property
    def name(self) -> str:
        return self.change.author.partition(" <")[0]

    @property
    def address(self) -> str:
        return self.change.author.partition(" <")[2].removesuffix(">")


Client = Callable[[Source], bytes | None]
"""Returns the mail, or None for a source that it cannot encode."""


def plain_mail(source: Source) -> bytes:
    """The mail in plain 8-bit text: what all others mean."""
    return _mail(source, source.body)


def _mail(source: Source, body: bytes, kind: bytes = b"text/plain; charset=utf-8", encoding: bytes = b"8bit",
          **others: bytes) -> bytes:  # fmt: skip
    headers: Headers = {
        "From": b"%s <%s>" % (word(source.name), source.address.encode()),
        "Subject": b"[PATCH] " + word(source.change.subject),
        "MIME-Version": b"1.0",
        "Content-Type": kind,
        "Content-Transfer-Encoding": encoding,
    }
    headers |= {name.replace("_", "-"): value for name, value in others.items()}
    return b"".join(b"%s: %s\n" % (name.encode(), value) for name, value in headers.items()) + b"\n" + body


def word(text: str, charset: str = "utf-8", encoding: str = "q", length: int = 30) -> bytes:
    """Encoded words (RFC 2047), folded; plain where the text needs none."""
    if text.isascii() and charset == "utf-8" and "=?" not in text:
        return f'"{text}"'.encode() if "@" in text else text.encode()
    return b"\n ".join(
        f"=?{charset}?{encoding}?".encode() + _word_text(text[place : place + length], charset, encoding) + b"?="
        for place in range(0, len(text), length)
    )


def _word_text(text: str, charset: str, encoding: str) -> bytes:
    raw = text.encode(charset)
    if encoding.lower() == "b":
        return base64.b64encode(raw)
    return b"".join(b"_" if byte == 32 else bytes([byte]) if chr(byte).isalnum() and byte < 128 else b"=%02X" % byte
                    for byte in raw)  # fmt: skip


def _quoted(source: Source) -> bytes:
    return _mail(source, quopri.encodestring(source.body), encoding=b"quoted-printable")


def _quoted_short(source: Source) -> bytes:
    """As a program that escapes all but letters, and breaks lines early."""
    lines = []
    for line in source.body.split(b"\n"):
        text = "".join(chr(byte) if chr(byte).isalnum() and byte < 128 else f"={byte:02x}" for byte in line)
        parts = re.findall(r"(?:=..|.){1,20}", text) or [""]
        lines.append("=\n".join(parts))
    return _mail(source, "\n".join(lines).encode(), encoding=b"Quoted-Printable")


def _base64(source: Source) -> bytes:
    return _mail(source, base64.encodebytes(source.body), encoding=b"base64")


def _named(encoding: bytes) -> Client:
    """An encoding with more in its header than its name (RFC 2045, section 6.1), as some programs write it."""

    def made(source: Source) -> bytes:
        encoder = base64.encodebytes if b"base64" in encoding.lower() else quopri.encodestring
        return _mail(source, encoder(source.body), encoding=encoding)

    return made


def _twice(source: Source) -> bytes:
    """Two subjects, which RFC 5322 (section 3.6) forbids; git reads the last one."""
    return b"Subject: [PATCH] net: of a gateway\n" + plain_mail(source)


def _base64_crlf(source: Source) -> bytes | None:
    """As Outlook: the text has the line ends of mail (RFC 2045, section 6.8)."""
    if b"\r" in source.body:
        return None
    return _mail(source, base64.encodebytes(source.body.replace(b"\n", b"\r\n")), encoding=b"BASE64")


def _crlf(source: Source) -> bytes:
    return plain_mail(source).replace(b"\n", b"\r\n")


def _flowed(source: Source) -> bytes | None:
    """As Thunderbird: lines that begin with a space are stuffed, and blanks at their ends are lost."""
    if re.search(rb"[ \t\r]$", source.body.replace(b"-- \n", b""), re.MULTILINE):
        return None
    stuffed = re.sub(rb"^(?=[ >]|From )", b" ", source.body, flags=re.MULTILINE)
    return _mail(source, stuffed, b"text/plain; charset=UTF-8; format=flowed")


def _flowed_wrapped(source: Source) -> bytes | None:
    """As above, with long lines broken behind a space that is to be deleted."""
    if re.search(rb"[ \t\r]$", source.body.replace(b"-- \n", b""), re.MULTILINE):
        return None
    lines = []
    for line in source.body.split(b"\n"):
        if line == b"-- ":
            lines.append(line)
            continue
        parts = [line[place : place + 60] for place in range(0, len(line), 60)] or [b""]
        lines += [(b" " if re.match(rb"[ >]|From ", part) else b"") + part + (b" " if last else b"")
                  for part, last in zip(parts, [True] * (len(parts) - 1) + [False], strict=True)]  # fmt: skip
    return _mail(source, b"\n".join(lines), b"text/plain; format=flowed; delsp=yes; charset=UTF-8")


def _charset(name: str, headers: str = "b") -> Client:
    def made(source: Source) -> bytes | None:
        try:
            body = source.body.decode().encode(name)
            return _mail(
                source, body, f"text/plain; charset={name}".encode(),
                From=word(source.name, name, headers) + f" <{source.address}>".encode(),
                Subject=b"[PATCH] " + word(source.change.subject, name, headers),
            )  # fmt: skip
        except UnicodeError:
            return None

    return made


def _without_charset(source: Source) -> bytes:
    return _mail(source, source.body, b"text/plain")


def _latin_without_charset(source: Source) -> bytes | None:
    try:
        return _mail(source, source.body.decode().encode("latin-1"), b"text/plain")
    except UnicodeError:
        return None


def _raw_headers(charset: str) -> Client:
    def made(source: Source) -> bytes | None:
        try:
            return _mail(
                source, source.body,
                From=f'"{source.name}" <{source.address}>'.encode(charset),
                Subject=f"[PATCH] {source.change.subject}".encode(charset),
            )  # fmt: skip
        except UnicodeError:
            return None

    return made


def _headers(headers: Headers) -> Client:
    return lambda source: _mail(source, source.body, **headers)


HEADERS: dict[str, Headers] = {
    "name in quotes": {"From": b'"Example \\"A\\", Inc." <ada@example.org>'},
    "name behind": {"From": b"ada@example.org (=?utf-8?q?J=C3=BCrgen?= Example)"},
    "no name": {"From": b"ada@example.org"},
    "no name in brackets": {"From": b"<ada@example.org>"},
    "comment": {"From": b"Ada (at work (today)) Example <ada@example.org> (remote)"},
    "encoded word in quotes": {"From": b'"=?utf-8?B?SsO8cmdlbiBHcsO2w59l?=" <ada@example.org>'},
    "base64 words": {"Subject": b"[PATCH] " + word("net: größer ist schöner", "utf-8", "B", 9)},
    "words beside text": {"Subject": b"[PATCH] net: =?UTF-8?Q?gr=C3=B6=C3=9Fer?= (=?utf-8?b?w6Q=?=)ok"},
    "words of several charsets": {
        "Subject": b"[PATCH] =?iso-8859-1?q?=E4?= =?utf-8?q?=C3=A4?=\n\t=?koi8-r?b?xA==?= =?windows-1252?Q?=80?= x",
    },
    "question mark in a word": {"Subject": b"[PATCH] =?utf-8?q?what?_gr=C3=B6=C3=9Fer??= ok?"},
    "character in two words": {"Subject": b"[PATCH] =?utf-8?b?YcM=?= =?utf-8?b?pGI=?="},
    "tag in a word": {"Subject": b"=?utf-8?q?=5BPATCH_v2_1=2F3=5D_gr=C3=B6=C3=9Fer?="},
    "folded by tabs": {"Subject": b"[PATCH\n\t1/2]\n\tnet:\n\t\tfolded", "From": b"Ada\n\t<ada@example.org>"},
    "folded before": {"Subject": b"\n [PATCH] net: behind", "From": b"\n Ada Example\n <ada@example.org>"},
    "spaces": {"Subject": b"  [PATCH]   net:  two\t tab  ", "From": b" Ada  Example  <ada@example.org> "},
    "several tags": {"Subject": b"[netdev] [PATCH net-next v3 01/10] [RFC] net: x [y]"},
    "no tag": {"Subject": b"net: no tag"},
    "colon behind a tag": {"Subject": b"[PATCH v3]: net: x"},
    "reply behind a tag": {"Subject": b"[PATCH v3] Re: net: x"},
    "two tags": {"Subject": b"[PATCH v2][net-next]net: x"},
    "Mercurial": {"Subject": b"[PATCH 1 of 2] net: x"},
    "patchwork": {"Subject": b"[net-next,v2,1/3] net: x [y]"},
    "no brackets": {"Subject": b"PATCH: net: x"},
    "open bracket": {"Subject": b"[PATCH net: x"},
    "empty tag": {"Subject": b"[] net: x"},
    "delivery": {
        "Received": b"from a (a [192.0.2.1])\n\tby b with ESMTP;\n\tFri, 27 Nov 2026 10:00:00 +0000",
        "DKIM_Signature": b"v=1; a=rsa-sha256; c=relaxed/relaxed;\n\tb=abc=",
    },
    "parameters": {"Content_Type": b"text/plain;\n\tcharset*=utf-8''utf-8;\n\tname*0*=utf-8''a%20; name*1=b"},
    "charset in quotes": {"Content_Type": b'Text/Plain; CHARSET="UTF-8"'},
    "charset us-ascii": {"Content_Type": b"text/plain; charset=us-ascii"},
}


def _parts(source: Source, kind: bytes, *parts: bytes, note: bytes = b"") -> bytes:
    body = note + b"".join(b"--=-b\n%s\n" % part for part in parts) + b"--=-b--\n"
    return _mail(source, body, b'multipart/%s; boundary="=-b"' % kind)


def _part(body: bytes, kind: bytes = b"text/plain; charset=utf-8", *headers: bytes) -> bytes:
    return b"Content-Type: %s\n%s\n%s" % (kind, b"".join(line + b"\n" for line in headers), body)


def _mutt_inline(source: Source) -> bytes:
    """As mutt: with "From " at the beginning of a line escaped, and no name of the charset in capitals."""
    text = re.sub(rb"^From ", b"=46rom ", quopri.encodestring(source.body), flags=re.MULTILINE)
    return _mail(
        source, text, b"text/plain; charset=utf-8", b"quoted-printable",
        Content_Disposition=b"inline", User_Agent=b"Mutt/2.2.9 (2022-11-12)",
    )  # fmt: skip


def _mutt_attached(source: Source) -> bytes:
    """As mutt with an attached patch: a preamble of one blank line, and the words above."""
    words, patch = _split(source)
    inline, attached = b"Content-Disposition: inline", b'Content-Disposition: attachment; filename="0001-x.patch"'
    return _parts(
        source, b"mixed", _part(words, b"text/plain; charset=utf-8", inline, b"Content-Transfer-Encoding: 8bit"),
        _part(patch, b"text/x-diff; charset=utf-8", attached), note=b"\n",
    )  # fmt: skip


def _exchange(source: Source) -> bytes | None:
    """As Outlook by Exchange: words in base64 with the line ends of mail, the patch as an unknown attachment."""
    if b"\r" in source.body:
        return None
    words, patch = _split(source)
    text = base64.encodebytes(words.replace(b"\n", b"\r\n"))
    code = b"Content-Transfer-Encoding: base64"
    inner = b"--_000_x_\n%s\n--_000_x_\n%s\n--_000_x_--\n" % (
        _part(text, b'text/plain; charset="utf-8"', code),
        _part(base64.encodebytes(b"<html><body>words</body></html>\r\n"), b'text/html; charset="utf-8"', code),
    )
    named = b'Content-Disposition: attachment; filename="0001-x.patch"; size=1; creation-date="x"'
    return _parts(
        source, b"mixed", _part(inner, b'multipart/alternative;\n\tboundary="_000_x_"'),
        _part(base64.encodebytes(patch), b'application/octet-stream; name="0001-x.patch"', named, code),
    )  # fmt: skip


def _thunderbird_signed(source: Source) -> bytes:
    """As Thunderbird signs with OpenPGP: headers and the public key are parts of what is signed."""
    inner = b"--i\n%s\n--i\n%s\n--i--\n" % (
        _part(source.body, b"text/plain; charset=UTF-8", b"Content-Transfer-Encoding: 8bit"),
        _part(b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n", b'application/pgp-keys; name="OpenPGP_0x1.asc"'),
    )
    own = b'multipart/mixed; boundary="i"; protected-headers="v1"'
    return _parts(
        source, b'signed; micalg=pgp-sha256; protocol="application/pgp-signature"',
        _part(inner, own, b"From: Eve <eve@example.org>", b"Subject: [PATCH] net: of the part"),
        _part(b"-----BEGIN PGP SIGNATURE-----\n", b'application/pgp-signature; name="OpenPGP_signature.asc"'),
    )  # fmt: skip


def _prefixes(old: bytes, new: bytes) -> Client:
    """A diff of another comparison than that of two commits (git-config(1), diff.mnemonicPrefix)."""

    def made(source: Source) -> bytes:
        body = re.sub(
            rb'^(diff --git "?)a(/.* "?)b(/.*)$', rb"\1%s\2%s\3" % (old, new), source.body, flags=re.MULTILINE
        )
        body = re.sub(rb'^(--- "?)a(/stack/)', rb"\1%s\2" % old, body, flags=re.MULTILINE)
        return _mail(source, re.sub(rb'^(\+\+\+ "?)b(/stack/)', rb"\1%s\2" % new, body, flags=re.MULTILINE))

    return made


def _split(source: Source) -> tuple[bytes, bytes]:
    """The message, and what is behind the line that ends it."""
    before, mark, behind = source.body.partition(b"\n---\n")
    return before + b"\n", mark[1:] + behind


def _attached(encoding: str) -> Client:
    encoders: dict[str, Callable[[bytes], bytes]] = {
        "8bit": bytes,
        "base64": base64.encodebytes,
        "quoted-printable": quopri.encodestring,
    }

    def made(source: Source) -> bytes:
        words, patch = _split(source)
        name = b"Content-Disposition: attachment;\n filename*=UTF-8''gr%C3%B6%C3%9Fer.patch"
        code = b"Content-Transfer-Encoding: " + encoding.encode()
        kind = b"text/x-patch; charset=utf-8; name=a.patch"
        return _parts(source, b"mixed", _part(words), _part(encoders[encoding](patch), kind, name, code))

    return made


_HTML = b"text/html; charset=utf-8"


def _alternative(source: Source) -> bytes:
    return _parts(source, b"alternative", _part(source.body), _part(b"<p>the same</p>\n", _HTML))


def _nested(source: Source) -> bytes:
    words, patch = _split(source)
    inner = b"--i\n%s\n--i\n%s\n--i--\n" % (_part(words), _part(b"<p>words</p>\n", _HTML))
    return _parts(source, b"mixed", _part(inner, b"multipart/alternative; boundary=i"), _part(patch, b"text/x-diff"))


def _signed(protocol: str, content: bytes) -> Client:
    def made(source: Source) -> bytes:
        kind = b"application/" + protocol.encode()
        return _parts(
            source, b'signed; protocol="%s"; micalg=pgp-sha256' % kind, _part(source.body),
            _part(content, kind, b"Content-Transfer-Encoding: base64"), note=b"This is a signed message.\n",
        )  # fmt: skip

    return made


def _clear_signed(source: Source) -> bytes | None:
    if b"\r" in source.body:
        return None
    dashed = re.sub(rb"^(?=-|From )", b"- ", source.body, flags=re.MULTILINE)
    end = b"\n-----BEGIN PGP SIGNATURE-----\n\nabcd\n-----END PGP SIGNATURE-----\n"
    return _mail(source, b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n" + dashed + end)


def _escaped(mark: bytes) -> Client:
    """As mboxo or mboxrd has it; git undoes it only on request."""
    return lambda source: _mail(source, re.sub(mark, rb">\1", source.body, flags=re.MULTILINE))


def _b4(source: Source) -> bytes:
    """As `b4 send` writes it: subjects are encoded with their tag, and a signature has a blank line before it."""
    return _mail(
        source, source.body.replace(b"\n-- \n", b"\n\n-- \n"), b'text/plain; charset="utf-8"',
        Subject=word(f"[PATCH net-next v2 2/3] {source.change.subject}é", length=40).replace(b"_2=2F3", b"_2/3"),
        To=b"=?utf-8?q?J=C3=BCrgen?= <j@example.org>, \n perf@service.example", X_Mailer=b"b4 0.16.0",
        Message_Id=b"<20261128-topic-v2-2-34d38a9aacd9@example.org>",
    )  # fmt: skip


def _b4_relay(source: Source) -> bytes:
    """As `b4 send` by its relay: the author stands in the text and in Reply-To."""
    author = b"%s <%s>" % (word(source.name), source.address.encode())
    relay = b"%s via B4 Relay <devnull+ada.example.org@kernel.example>" % word(source.name)
    others = {"Reply_To": source.address.encode(), "X_Original_From": author}
    return _mail(source, b"From: %s\n\n" % author + source.body, From=relay, **others)


def _footer(source: Source) -> bytes:
    return _mail(source, source.body + b"\n_______________\nnet mailing list\nnet@lists.example\n")


def _footer_part(source: Source) -> bytes:
    return _parts(source, b"mixed", _part(source.body), _part(b"_____\nnet mailing list\n", b"text/plain"))


def _inner(head: bytes) -> Client:
    """Headers in the first lines of the text."""
    return lambda source: _mail(source, head + source.body, From=b"Relay via net <net@lists.example>")


INNER = {
    "From": b"From: Grace Hopper <grace@example.org>\n\n",
    "From and Subject": b"From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\nSubject: [PATCH v3] net: inner\n\n",
    "all, folded": b"Subject: net: inner\n folded\nDate: Fri, 27 Nov 2026 10:00:00 +0000\nfrom: E <e@x.org>\n\n",
    "twice": b"From: Grace <g@example.org>\nFrom: Eve <e@example.org>\n\n",
    "without a blank line": b"From: Grace <g@example.org>\n",
    "bare UTF-8": "From: Jürgen Größe <j@example.org>\n\n".encode(),
    "envelope": b">From %s Mon Sep 17 00:00:00 2001\nFrom: Grace <g@example.org>\n\n" % (b"0" * 40),
    "[PATCH]": b"[PATCH] net: inner subject\n\n",
    "blank lines": b"\n\n\nFrom: Grace Hopper <grace@example.org>\n\n\n\n",
    "no header": b"Hello,\n\nFrom: Eve <e@example.org>\n\n",
    "quotes": b'From: "Hopper, Grace" <grace@example.org>\n\n',
    "scissors": b"Hello,\n\n-- >8 --\nSubject: net: behind scissors\n\n",
}

CLIENTS: dict[str, Client] = {
    "quoted-printable": _quoted,
    "quoted-printable, short lines": _quoted_short,
    "base64": _base64,
    **{f"encoding {name!r}": _named(name.encode()) for name in (
        "base64 ", "\n base64", '"base64"', "BASE64 (a comment)", "Quoted-Printable;", "quoted-printable\t",
    )},
    "two subjects": _twice,
    "base64 of CR LF": _base64_crlf,
    "CR LF": _crlf,
    "format=flowed": _flowed,
    "format=flowed, wrapped": _flowed_wrapped,
    **{f"charset {name}": _charset(name) for name in (
        "iso-8859-1", "iso-8859-2", "iso-8859-15", "windows-1252", "koi8-r", "iso-2022-jp", "gb18030", "utf-7",
    )},
    "charset iso-8859-1, words in Q": _charset("iso-8859-1", "Q"),
    "no charset": _without_charset,
    "Latin-1 without charset": _latin_without_charset,
    "bare UTF-8 headers": _raw_headers("utf-8"),
    "bare Latin-1 headers": _raw_headers("latin-1"),
    **{f"headers: {name}": _headers(change) for name, change in HEADERS.items()},
    **{f"attached, {encoding}": _attached(encoding) for encoding in ("8bit", "base64", "quoted-printable")},
    "multipart/alternative": _alternative,
    "alternative in mixed": _nested,
    "PGP/MIME": _signed("pgp-signature", base64.encodebytes(b"signature" * 20)),
    "S/MIME": _signed("pkcs7-signature", base64.encodebytes(b"\x30\x82\x00\x01" * 60)),
    "PGP/MIME of Thunderbird": _thunderbird_signed,
    "PGP clear text": _clear_signed,
    "mutt": _mutt_inline,
    "mutt, attached": _mutt_attached,
    "Exchange": _exchange,
    **{f"prefixes {old}/ and {new}/": _prefixes(old.encode(), new.encode()) for old, new in ("iw", "cw", "ci", "ow")},
    "mboxo": _escaped(rb"^(From )"),
    "mboxrd": _escaped(rb"^(>*From )"),
    "b4": _b4,
    "relay of b4": _b4_relay,
    "footer of a list": _footer,
    "footer of a list in a part": _footer_part,
    **{f"inner headers: {name}": _inner(head) for name, head in INNER.items()},
}  # fmt: skip
NOT_AS_GIT = {
    "base64 of CR LF": "git keeps CR LF of an encoded text, which no patch of a file with LF applies with",
    "multipart/alternative": "git takes the HTML for a part of the patch",
    "alternative in mixed": "git takes the HTML for a part of the patch",
    "PGP/MIME": "git takes the signature for a part of the patch",
    "S/MIME": "git takes the signature for a part of the patch",
    "PGP/MIME of Thunderbird": "git takes key and signature for parts of the patch",
    "Exchange": "git takes the HTML for a part of the patch",
    "PGP clear text": "git does not remove the dashes of signed text",
}
"""Clients whose mails are read as the plain mail that they mean, and not as git reads them, with the reason."""
