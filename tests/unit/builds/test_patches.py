# SPDX-License-Identifier: BSD-2-Clause
"""Patches in their usual forms are read, or refused with a sentence."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.builds.patches import PatchError, read_series
from perfweb.inputlimits import PATCH_BYTES
from tests.checkouts import Checkout

DIFF = b"""diff --git a/stack/x.c b/stack/x.c
--- a/stack/x.c
+++ b/stack/x.c
@@ -1 +1 @@
-a
+b
"""


def mail(subject: str, body: bytes = DIFF, **headers: str) -> bytes:
    given_headers = {"From": "Ada Example <ada@example.org>", "Subject": subject, **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in given_headers.items())
    return b"From 0123 Mon Sep 17 00:00:00 2001\n" + lines.encode() + b"\n" + body + b"\n"


def test_series_of_format_patch(series: bytes, checkout: Checkout) -> None:
    read = read_series(series)
    assert [patch.subject for patch in read.patches] == ["net: name five", "net: name thirty"]
    assert {patch.author for patch in read.patches} == {"Ada Example <ada@example.org>"}
    assert read.patches[0].message == "Because it is."
    assert (read.title, read.cover.splitlines()[0]) == ("net: names", "Why not.")
    assert read.base == checkout.git("rev-parse", "HEAD").decode().strip()
    assert all(patch.diff.startswith(b"diff --git ") for patch in read.patches)


def test_bare_diff(checkout: Checkout) -> None:
    checkout.edit("stack/net/if.c", lambda text: text.replace("line5", "five"))
    diff = checkout.diff()
    (patch,) = read_series(b"Only this:\n\n" + diff).patches
    assert (patch.subject, patch.author, patch.diff) == ("", "", diff)


def test_form_sends_crlf(series: bytes) -> None:
    assert read_series(series.replace(b"\n", b"\r\n")) == read_series(series)


def test_crlf_of_a_file_stays() -> None:
    diff = DIFF.replace(b"-a\n", b"-a\r\n")
    assert read_series(diff).patches[0].diff == diff


def test_order_is_that_of_the_numbers() -> None:
    mbox = mail("[PATCH v3 2/2] second") + mail("[PATCH v3 0/2] cover", b"words\n") + mail("[PATCH v3 1/2] first")
    read = read_series(mbox)
    assert [patch.subject for patch in read.patches] == ["first", "second"]
    assert (read.title, read.cover) == ("cover", "words")


def test_replies_of_others_are_no_patches() -> None:
    mbox = mail("[PATCH 1/1] mine") + mail("Re: [PATCH 1/1] mine", b"I would do:\n" + DIFF)
    assert [patch.subject for patch in read_series(mbox).patches] == ["mine"]


def test_transfer_encodings_and_attachments() -> None:
    quoted = mail(
        "=?utf-8?q?Gr=C3=B6=C3=9Fe?=", DIFF.replace(b"+b", b"+b=3D"), Content_Transfer_Encoding="quoted-printable"
    )
    (patch,) = read_series(quoted).patches
    assert patch.subject == "Größe"
    assert patch.diff.rstrip().endswith(b"+b=")
    parts = (
        b"--x\nContent-Type: text/plain\n\nSee below.\n--x\nContent-Type: text/x-patch; name=a.diff\n\n%s--x--\n" % DIFF
    )
    (patch,) = read_series(mail("attached", parts, Content_Type="multipart/mixed; boundary=x")).patches
    assert patch.diff.startswith(b"diff --git a/stack/x.c")
    assert patch.message == "See below."


def test_author_within_the_body_is_the_author() -> None:
    (patch,) = read_series(mail("sent on", b"From: Grace <grace@example.org>\n\nWhy.\n---\n" + DIFF)).patches
    assert (patch.author, patch.message) == ("Grace <grace@example.org>", "Why.")


def test_subject_carries_no_escapes() -> None:
    (patch,) = read_series(mail("=?utf-8?q?a=1B[31mred=0D=0A=E2=80=AEb?=")).patches
    assert patch.subject.isprintable()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no diff"),
        (b"hello\n", "has no diff"),
        (mail("[PATCH] talk", b"no diff here\n"), "None of these mails has a diff"),
        (DIFF + b"\0", "NUL byte"),
        (b"x" * (PATCH_BYTES + 1), "the max is"),
        (DIFF + b"GIT binary patch\nliteral 4\n", "binary file"),
        (mail("[PATCH 1/3] a") + mail("[PATCH 3/3] c"), "Patch 2 of 3 is missing"),
        (mail("[PATCH 1/2] a") + mail("[PATCH 1/2] a"), "Patch 1 of 2 is there 2 times"),
        (mail("[PATCH 1/2] a") + mail("[PATCH v2 1/2] a"), "versions 1 and 2"),
        (mail("[PATCH 1/2] a") + mail("[PATCH] other"), "“other” is no part"),
        (mail("[PATCH 9/2] a"), "Patch 9 of 2 is there 1 times"),
        (b"".join(mail("[PATCH] a") for _ in range(65)), "65 patches; the max is 64"),
        (b"".join(mail("[PATCH] a") for _ in range(200)), "200 mails"),
        (DIFF + b"base-commit: %s\nbase-commit: %s\n" % (b"a" * 40, b"b" * 40), "two base commits"),
    ],
)
def test_a_refusal_states_what_to_send(content: bytes, sentence: str) -> None:
    with pytest.raises(PatchError, match=re.escape(sentence)):
        read_series(content)


PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([
        DIFF, b"\n", b"\r\n", b"From a Mon Sep 17 00:00:00 2001\n", b"Subject: [PATCH 1/2] x\n", b"From: =?utf-8?b?",
        b"Content-Transfer-Encoding: base64\n", b"Content-Transfer-Encoding: x-uuencode\n", b"begin 644 x\n",
        b"Content-Type: multipart/mixed; boundary=x\n", b"Content-Type: text/plain; charset=nonsense\n", b"--x\n",
        b"--x--\n", b"Subject: =?nonsense?q?a?=\n", b"Subject: =?utf-8?b?a?=\n", b"Content-Type: message/rfc822\n",
        b"---\n", b"@@ -1 +1 @@\n",
    ]),
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map(b"".join))
def test_whatever_comes_is_read_or_refused(content: bytes) -> None:
    try:
        read = read_series(content)
    except PatchError:
        return
    assert all(patch.diff and patch.subject.isprintable() and patch.author.isprintable() for patch in read.patches)


def test_headers_without_end_are_cut() -> None:
    """Python's parser takes the square of a header's length: many minutes for each of these."""
    for content in (
        mail("=?utf-8?q?a?= " * 100_000),
        mail("[PATCH] a", Content_Type="text/plain; " + "a=b; " * 300_000),
    ):
        series = read_series(content)
        assert (len(series.patches), len(series.title) <= 200) == (1, True)


def test_mail_of_very_many_parts_is_refused() -> None:
    with pytest.raises(PatchError, match="more than 200 parts"):
        read_series(mail("[PATCH] a", b"--b\n\n" * 10_000, Content_Type="multipart/mixed; boundary=b"))
