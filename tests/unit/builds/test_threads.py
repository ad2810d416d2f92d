# SPDX-License-Identifier: BSD-2-Clause
"""One series is found in a thread that has other versions, other series and replies."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.builds.patches import PatchError, read_series
from perfweb.builds.threads import series_in
from perfweb.inputlimits import THREAD_MAILS
from tests.unit.builds.test_patches import DIFF, mail

WORDS = b"words\n"
BOB = "Bob <bob@example.org>"


def letter(key: str, subject: str, parent: str = "", body: bytes = DIFF, **headers: str) -> bytes:
    given_headers = {"Message-ID": f"<{key}@x>", **({"In-Reply-To": f"<{parent}@x>"} if parent else {}), **headers}
    return mail(subject, body, **given_headers)


FIRST = [
    letter("a0", "[PATCH net-next 0/2] net: names", body=WORDS),
    letter("a1", "[PATCH net-next 1/2] one", "a0"),
    letter("a2", "[PATCH net-next 2/2] two", "a0"),
]
TALK = [
    letter("r1", "Re: [PATCH net-next 1/2] one", "a1", WORDS, From=BOB),
    letter("r2", "Re: [PATCH net-next 1/2] one", "r1", WORDS + DIFF),
    letter("f1", "[PATCH net-next] a fix on top", "a2", From=BOB),
    letter("q1", "A question", "a0", WORDS, From=BOB),
]
SECOND = [
    letter("b0", "[PATCH net-next v2 0/2] net: names", "a0", WORDS),
    letter("b1", "[PATCH net-next v2 1/2] one, better", "b0"),
    letter("b2", "[PATCH net-next v2 2/2] two, better", "b1"),
    letter("s1", "Re: [PATCH net-next v2 2/2] two, better", "b2", WORDS, From=BOB),
]
THREAD = b"".join([*FIRST, *TALK, *SECOND])


def subjects(thread: bytes, key: str) -> list[str]:
    return [patch.subject for patch in read_series(series_in(thread, key)).patches]


@pytest.mark.parametrize("key", ["a0@x", "a1@x", "a2@x", "r1@x", "r2@x", "q1@x", " <a2@x>\n"])
def test_the_first_version(key: str) -> None:
    assert subjects(THREAD, key) == ["one", "two"]
    assert read_series(series_in(THREAD, key)).title == "net: names"


@pytest.mark.parametrize("key", ["b0@x", "b1@x", "b2@x", "s1@x"])
def test_a_version_in_reply_to_an_older_one(key: str) -> None:
    assert subjects(THREAD, key) == ["one, better", "two, better"]


def test_a_patch_in_reply_to_a_series_is_alone() -> None:
    assert subjects(THREAD, "f1@x") == ["a fix on top"]


def test_patches_without_their_cover_letter() -> None:
    assert subjects(b"".join([*FIRST[1:], *TALK, *SECOND[1:]]), "a2@x") == ["one", "two"]
    without = [letter("c1", "[PATCH 1/2] x"), letter("c2", "[PATCH 2/2] y", "c1")]
    assert subjects(b"".join(without), "c2@x") == ["x", "y"]


def test_a_series_that_was_sent_twice() -> None:
    again = [
        letter("d0", "[PATCH RESEND net-next 0/2] net: names", "a0", WORDS),
        letter("d1", "[PATCH RESEND net-next 1/2] one again", "d0"),
        letter("d2", "[PATCH RESEND net-next 2/2] two again", "d0"),
    ]
    assert subjects(THREAD + b"".join(again), "a1@x") == ["one", "two"]


def test_two_series_of_equal_numbers() -> None:
    other = [
        letter("e1", "[PATCH net-next 1/2] of Bob", From=BOB),
        letter("e2", "[PATCH net-next 2/2] Bob", "e1", From=BOB),
    ]
    own = [letter("g1", "[PATCH net-next 1/2] next", "r2"), letter("g2", "[PATCH net-next 2/2] last", "g1")]
    thread = THREAD + b"".join([*other, *own])
    assert subjects(thread, "e2@x") == ["of Bob", "Bob"]
    assert subjects(thread, "g1@x") == ["next", "last"]
    assert subjects(thread, "a1@x") == ["one", "two"]


def test_mails_that_an_archive_has_twice() -> None:
    assert subjects(THREAD + THREAD, "b1@x") == ["one, better", "two, better"]


def test_lines_of_archives() -> None:
    archived = THREAD.replace(b"From 0123 Mon Sep 17 00:00:00 2001", b"From mboxrd@z Thu Jan  1 00:00:00 1970")
    assert subjects(archived.replace(b"\n", b"\r\n"), "b2@x") == ["one, better", "two, better"]


@pytest.mark.parametrize(
    ("thread", "key", "reason"),
    [
        (THREAD, "none@x", "The thread has no mail <none@x>"),
        (letter("q", "A question", body=WORDS), "q@x", "neither a patch nor a reply to one"),
        (letter("l", "Re: A loop", "l", WORDS), "l@x", "neither a patch nor a reply to one"),
        (DIFF, "a@x", "This is no mbox"),
        (b"", "a@x", "This is no mbox"),
        (mail("[PATCH] x") * (THREAD_MAILS + 1), "a@x", "This thread has 501 mails"),
        (b"".join(FIRST[:2]), "a1@x", "Patch 2 of 2 is missing"),
    ],
)
def test_what_cannot_be_found_is_explained(thread: bytes, key: str, reason: str) -> None:
    with pytest.raises(PatchError, match=reason):
        read_series(series_in(thread, key))


@given(st.binary(max_size=300), st.text(max_size=20))
def test_nothing_else_is_raised(noise: bytes, key: str) -> None:
    for thread in (noise, THREAD + noise, THREAD[: len(noise) * 5] + noise):
        with suppress(PatchError):
            read_series(series_in(thread, key or "a1@x"))
