# SPDX-License-Identifier: BSD-2-Clause
"""A patch that is pasted into the form is stored as it was pasted, and applies as git applies it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from django.test import Client
from django.utils.html import strip_tags
from hypothesis import given
from hypothesis import strategies as st

from perfweb.accounts.actors import Actor
from perfweb.builds.mails import without_crlf
from perfweb.submissions.models import Submission
from tests.checkouts import IF_C, Checkout

LINE_ENDS = st.sampled_from(["\n", "\r\n"])
LINES = st.text(st.sampled_from("ab \t+-@äö\u2028\u2029\x85\x0b\x0c\ufeff"), max_size=8)


def signed_in(actor: Actor) -> Client:
    assert actor.user is not None
    client = Client()
    client.force_login(actor.user)
    return client


def as_form(text: str) -> str:
    """What a form sends of a text: each line end becomes CR LF (WHATWG HTML, constructing the entry list)."""
    return text.replace("\n", "\r\n")


@given(st.lists(st.tuples(LINES, LINE_ENDS), min_size=1, max_size=8), st.booleans())
def test_crlf_of_a_form_is_removed_and_nothing_else(lines: list[tuple[str, str]], ended: bool) -> None:
    text = "".join(line + end for line, end in lines) + "diff" + ("\n" if ended else "")
    assert without_crlf(as_form(text).encode()) == text.encode()


@given(st.lists(st.tuples(LINES, LINE_ENDS), max_size=8), st.lists(st.tuples(LINES, LINE_ENDS), max_size=4))
def test_lines_that_a_program_adds_to_a_patch_do_not_keep_its_crlf(
    before: list[tuple[str, str]], behind: list[tuple[str, str]]
) -> None:
    """A header of a relay, or the footer of a list."""
    diff = "diff --git a/x b/x\r\n--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n-- \r\n2.39\r\n"
    text = f"{''.join(map(''.join, before))}{diff}{''.join(map(''.join, behind))}"
    assert without_crlf(text.encode()) == text.replace("\r\n", "\n").encode()


@given(st.lists(st.tuples(LINES, LINE_ENDS), min_size=1, max_size=8))
@pytest.mark.parametrize(
    "head",
    [
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n",
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
        "--- x\n+++ x\n@@ -1 +1 @@ int main(void)\r\n",  # GNU diff -p repeats a line of the file
        "--- x\t2026-11-27\n+++ x\t2026-11-27\n@@ -1,1 +1,1 @@\n",
        "Index: x\n===\n--- x\n+++ x\n@@ -1 +1 @@\n",
    ],
)
def test_a_patch_of_a_file_with_crlf_stays(head: str, lines: list[tuple[str, str]]) -> None:
    patch = (head + "".join(f"+{line}{end}" for line, end in lines)).encode()
    assert without_crlf(patch) == patch


EDITS = {
    "plain": lambda text: text.replace("line5;", "five;"),
    "crlf": lambda text: text.replace("line5;\n", "five;\r\nint more;\r\n"),
    "blanks": lambda text: text.replace("line5;", "five; \t ").replace("int line6;\n", "\n \n\t\n"),
    "no newline": lambda text: text.replace("line40;\n", "forty;"),
    "unicode": lambda text: text.replace("line5;", "/* a\u2028b\u2029c\x85d\x0be\x0cf\ufeff */"),
    "blank end": lambda text: text.replace("line39;", "x;").replace("int line40;\n", "\n"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("edit", list(EDITS))
@pytest.mark.parametrize("form", ["diff", "mail"])
def test_pasted_patch_is_stored_applies_and_is_shown_in_single_lines(
    author: Actor, repository: Checkout, tmp_path: Path, edit: str, form: str
) -> None:
    repository.put("stack/net/if.c", EDITS[edit](IF_C).encode())
    if form == "diff":
        patch = repository.diff()
    else:
        repository.commit("net: edit")
        patch = repository.git("format-patch", "--stdout", "-1")
        repository.git("reset", "-q", "--hard", "HEAD~1")
    fields = {"text": as_form(patch.decode()), "matrix": "tcp-quick", "testbed": "demo", "submit": "1"}
    answer = signed_in(author).post("/submissions/new/", fields)
    assert answer.status_code == 302, strip_tags(answer.content.decode())
    submission = Submission.objects.get()
    sent = Client().get(f"/submissions/{submission.number}/patch.mbox").getvalue()
    assert sent == bytes(submission.patch) == patch
    (tmp_path / "sent.patch").write_bytes(sent)
    subprocess.run(["git", "apply", "--index", str(tmp_path / "sent.patch")], cwd=repository.tree, check=True)
    assert (repository.tree / "stack/net/if.c").read_bytes() == EDITS[edit](IF_C).encode()
    page = Client().get(f"/submissions/{submission.number}/").content.decode()
    shown = page.partition('aria-label="Patch"><code>')[2].partition("</code>")[0]
    assert "\r" not in shown
    assert shown.count("\n") == patch.count(b"\n")


@pytest.mark.django_db
def test_nul_is_refused(author: Actor, diff: bytes) -> None:
    fields = {"text": diff.decode() + "\0", "matrix": "tcp-quick", "testbed": "demo", "submit": "1"}
    answer = signed_in(author).post("/submissions/new/", fields)
    assert answer.status_code == 400
    assert "has a NUL character" in answer.content.decode()
    assert not Submission.objects.exists()
