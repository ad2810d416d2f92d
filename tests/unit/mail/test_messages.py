# SPDX-License-Identifier: BSD-2-Clause
"""Parsing of mails, and which ones are ignored."""

import base64
import quopri
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perfweb.builds.patches import read_series
from perfweb.inputlimits import MAIL_BYTES
from perfweb.mail.messages import IgnoredError, Rules, read_message
from perfweb.mail.proof import signers

RULES = Rules("perf@service.example", "mx.service.example", {"net.lists.example": "net@lists.example"})
DIFF = "--- a/stack/net/if.c\n+++ b/stack/net/if.c\n@@ -1,2 +1,2 @@\n int line1;\n-int line2;\n+int zwei; /* ä = 2 */\n"
HEAD = "From: Ada <ada@example.org>\nMessage-ID: <1@example.org>\nSubject: [PATCH v2 2/3] net: zwei\n"
MAIL = f"{HEAD}\nBecause.\n\nperf: tcp quick\n---\n{DIFF}-- \n2.39\n"


def mail(**headers: str) -> bytes:
    """MAIL with additional or other headers."""
    added = "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in headers.items())
    kept = [line for line in HEAD.splitlines() if line.partition(":")[0].replace("-", "_") not in headers]
    return (added + "\n".join(kept) + "\n" + MAIL.removeprefix(HEAD)).encode()


def test_parts_of_a_mail() -> None:
    found = read_message(mail(In_Reply_To="<0@example.org>", References="<a@b> <0@example.org>"), RULES)
    assert (found.id, found.parents) == ("<1@example.org>", ("<a@b>", "<0@example.org>"))
    assert (found.sender, found.title, found.is_patch) == ("ada@example.org", "net: zwei", True)
    assert (found.version, found.number, found.total) == (2, 2, 3)
    assert (found.request, found.problem, found.proven) == ("tcp quick", "", False)


def encoded(name: str) -> bytes:
    text = MAIL.removeprefix(HEAD).lstrip("\n").encode()
    body = base64.encodebytes(text) if name == "base64" else quopri.encodestring(text)
    return f"{HEAD}Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {name}\n\n".encode() + body


def attached() -> bytes:
    parts = (
        f"--=\n\nperf: tcp quick\n\n--=\nContent-Type: text/x-patch\nContent-Disposition: attachment\n\n{DIFF}\n--=--\n"
    )
    return f'{HEAD}Content-Type: multipart/mixed; boundary="="\n\n{parts}'.encode()


@pytest.mark.parametrize(
    "content",
    [MAIL.encode(), MAIL.replace("\n", "\r\n").encode(), encoded("base64"), encoded("quoted-printable"), attached()],
)
def test_diff_arrives_in_every_wrapping(content: bytes) -> None:
    found = read_message(content, RULES)
    assert (found.request, found.problem) == ("tcp quick", "")
    read = read_series(found.mbox.replace(b"2/3", b"1/1"))
    assert read.patches[0].diff.startswith(DIFF.encode())
    assert (read.title, read.patches[0].author) == ("net: zwei", "Ada <ada@example.org>")


def test_series_that_is_attached_to_one_mail() -> None:
    one, two = (
        f"From {'a' * 40} Mon Sep 17 00:00:00 2001\nFrom: Ada <a@b.example>\nSubject: [PATCH {n}/2] n{n}\n\n---\n{DIFF}"
        for n in (1, 2)
    )
    parts = "".join(f"--=\nContent-Type: text/x-patch\n\n{part}\n" for part in (two, one))
    head = HEAD.replace("v2 2/3", "0/2")
    found = read_message(
        f'{head}Content-Type: multipart/mixed; boundary="="\n\n--=\n\nperf: tcp\n{parts}--=--\n'.encode(), RULES
    )
    assert (found.number, found.total, found.request) == (None, None, "tcp")
    assert [patch.subject for patch in read_series(found.mbox).patches] == ["n1", "n2"]


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg; name=logo.jpg", "audio/ogg", "IMAGE/GIF"])
def test_a_picture_beside_the_text_is_no_patch(kind: str) -> None:
    logo = "Content-Transfer-Encoding: base64\n\niVBORw0KGgoAAAAA\n"
    parts = f"--=\n\nperf: tcp\n---\n{DIFF}\n--=\nContent-Type: {kind}\n{logo}"
    found = read_message(f'{HEAD}Content-Type: multipart/mixed; boundary="="\n\n{parts}--=--\n'.encode(), RULES)
    assert (found.request, found.problem) == ("tcp", "")
    assert found.mbox.endswith(DIFF.encode() + b"\n\n")


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"From": "ada@example.org, bob@example.org"}, "one address"),
        ({"From": "bob@example.org <ada@example.org>"}, "one address"),
        ({"From": "jürgen@example.org"}, "of ASCII characters"),
        ({"From": "Jürgen <jürgen@example.org>"}, "of ASCII characters"),
        ({"From": "=?utf-8?q?j=C3=BCrgen?=@example.org"}, "of ASCII characters"),
        ({"Message_ID": "nonsense"}, "no Message-ID"),
    ],
)
def test_what_is_left_alone(headers: dict[str, str], why: str) -> None:
    with pytest.raises(IgnoredError, match=why):
        read_message(mail(**headers), RULES)


def test_two_senders_and_too_much_are_left_alone() -> None:
    for content in (b"From: bob@example.org\n" + mail(), mail() + b"x" * MAIL_BYTES):
        with pytest.raises(IgnoredError):
            read_message(content, RULES)


def test_list_that_is_set_up_gets_a_copy() -> None:
    found = read_message(mail(List_Id="Net <NET.lists.example>", Precedence="list"), RULES)
    assert found.copy_to == "net@lists.example"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("Subject:", "Content-Type: text/plain; format=flowed\nSubject:"), "format=flowed"),
        (("2/3", "4/3"), "patch 4 of 3"),
        (("2/3", "2/300"), "64 patches at most"),
        (("Because.", "perf: udp"), "2 lines"),
        (("int line2;", "int \0;"), "binary"),
    ],
)
def test_problem_is_reported(change: tuple[str, str], problem: str) -> None:
    found = read_message(MAIL.replace(*change).encode(), RULES)
    assert problem in found.problem
    assert found.request


@pytest.mark.parametrize("line", ["> perf: tcp quick", "    perf: tcp quick", "Perf-tested-by: me"])
def test_quoted_request_is_none(line: str) -> None:
    assert read_message(MAIL.replace("perf: tcp quick", line).encode(), RULES).request == ""


PASS = "mx.service.example; dkim=pass header.d=example.org"


@pytest.mark.parametrize(
    ("results", "signature", "proven"),
    [
        ([PASS], "", True),
        (["mx.service.example; spf=pass smtp.mailfrom=x@y; dkim=pass (1024-bit) header.i=@example.org"], "", True),
        (["elsewhere.example; dkim=pass header.d=example.org"], "", False),  # forged under another name
        (["mx.service.example; dkim=fail header.d=example.org", PASS], "", False),  # forged below the service's own
        (["mx.service.example; dkim=none", PASS], "", False),
        (["mx.service.example; dkim=pass header.d=evil.example"], "", False),
        (['mx.service.example; dkim=fail reason="; dkim=pass header.d=example.org"'], "", False),
        (["mx.service.example; dkim=fail (; dkim=pass header.d=example.org)"], "", False),
        (["(mx.service.example; dkim=pass header.d=example.org"], "", False),
        ([PASS], "v=1; a=rsa-sha256; l=20; d=example.org", False),  # an attacker could append to the text
    ],
)
def test_verified_senders(results: list[str], signature: str, proven: bool) -> None:
    head = "".join(f"Authentication-Results: {value}\n" for value in results)
    head += f"DKIM-Signature: {signature}\n" if signature else ""
    assert read_message(head.encode() + mail(), RULES).proven is proven
    assert not read_message(head.encode() + mail(), Rules(RULES.address)).proven  # none is configured


@given(st.text(alphabet=string.ascii_letters + '"\\();= \n\t.@/-', max_size=80))
@example('mx; dkim=pass header.d="')
def test_results_of_authentication_are_read_without_a_fault(text: str) -> None:
    assert signers([text], "mx.service.example") == frozenset() or text.lower().count("mx.service.example")
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    header = f'mx.service.example; dkim=fail reason="{quoted}" header.d=example.org'
    assert signers([header], "mx.service.example") == frozenset()


@given(st.binary(max_size=2000))
def test_bytes_are_read_or_left_alone(content: bytes) -> None:
    check(content)


HEADERS = st.sampled_from(
    [
        "From", "Subject", "Message-ID", "References", "In-Reply-To", "Content-Type", "Content-Transfer-Encoding",
        "List-Id", "Precedence", "Authentication-Results", "DKIM-Signature", "Auto-Submitted", "Return-Path",
        "MIME-Version",
    ]
)  # fmt: skip
VALUES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([
        b"a@b.example", b"<1@b>", b"=?utf-8?q?=C3?=", b"=?x?b?!?=", b"multipart/mixed; boundary=a", b"base64",
        b"text/plain; charset=utf-16", b"message/rfc822", b"text/plain; format*0*=x'y'%ff", b"[PATCH v2 0/2] \xff",
    ]),
)  # fmt: skip


@given(st.lists(st.tuples(HEADERS, VALUES), max_size=8), st.binary(max_size=300))
def test_headers_of_any_kind_are_read_or_left_alone(headers: list[tuple[str, bytes]], body: bytes) -> None:
    first = b"From: a@b.example\nMessage-ID: <1@b>\n"
    for begin in (b"", first):
        check(begin + b"".join(name.encode() + b": " + value + b"\n" for name, value in headers) + b"\n" + body)


def test_thousand_parts_inside_each_other() -> None:
    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(2000))
    check(HEAD.encode() + deep.encode())


def check(content: bytes) -> None:
    try:
        found = read_message(content, RULES)
    except IgnoredError:
        return
    for text in (found.id, *found.parents, found.sender, found.subject, found.copy_to):
        assert text.isprintable(), "a header of an answer is made of it"
    assert "\0" not in found.request + found.problem, "the database cannot keep it"
    assert (len(found.id) <= 250, len(found.sender) <= 254, len(found.subject) <= 200) == (True, True, True)
