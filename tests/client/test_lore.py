# SPDX-License-Identifier: BSD-2-Clause
"""`perfctl submit --lore`, with an archive that serves threads as a public-inbox does."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from perfctl.commands import run_command
from perfctl.lore import thread_of

from perfweb.submissions.models import Submission
from tests.checkouts import Checkout

FROM = b"From mboxrd@z Thu Jan  1 00:00:00 1970\n"
LATIN = FROM + "Message-ID: <latin@x>\nSubject: Grüße\n\nwörter\n".encode("latin-1")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write no log."""


@contextmanager
def archive(root: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def version(clone: Checkout, number: int, *options: str) -> list[bytes]:
    """The mails of a version of a series of two patches."""
    clone.git("reset", "-q", "--hard", "origin/HEAD")
    for line in (5, 30):
        source = clone.tree / "stack/net/if.c"
        source.write_text(source.read_text().replace(f"line{line};", f"v{number}_{line};"))
        clone.commit(f"net: version {number} of line {line}")
    clone.git("format-patch", "-q", "-o", f"../v{number}", f"-v{number}", "--thread", *options, "origin/HEAD")
    files = sorted((clone.tree.parent / f"v{number}").iterdir())
    return [FROM + path.read_bytes().partition(b"\n")[2] for path in files]


def identifier(mail: bytes) -> str:
    (line,) = [line for line in mail.split(b"\n") if line.lower().startswith(b"message-id: ")]
    return line.split(b"<")[1].rstrip(b">").decode()


def test_the_series_of_a_mail_is_submitted(
    site: list[str], clone: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = version(clone, 1)
    second = version(clone, 2, f"--in-reply-to={identifier(first[0])}")
    key = identifier(second[1])
    for inbox in ("all", "netdev"):
        folder = tmp_path / "archive" / inbox / key
        folder.mkdir(parents=True)
        (folder / "t.mbox.gz").write_bytes(gzip.compress(b"\n".join([*first, LATIN, *second])))
    with archive(tmp_path / "archive") as server:
        address = f"{server}/netdev/{key}/T/#u"
        threads = [thread_of(mail, f"{server}/all/") for mail in (key, f"<{key}>", f" {address}", address)]
        assert threads == [threads[0]] * 4
        assert threads[0][1] == key
        assert run_command([*site, "submit", "--lore", address, "--archive", f"{server}/all/"]) == 0
    output = capsys.readouterr()
    assert "is waiting" in output.out
    assert "a mail is not UTF-8, and left out: Gr" in output.err
    subjects = [stage["subject"] for stage in Submission.objects.get().stages]
    assert subjects == ["net: version 2 of line 5", "net: version 2 of line 30"]


def test_what_an_archive_does_not_have_is_explained(
    site: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for key, content in {"damaged@x": b"\x1f\x8bno", "short@x": gzip.compress(LATIN)[:-9], "page@x": b"<html>"}.items():
        (tmp_path / "all" / key).mkdir(parents=True)
        (tmp_path / "all" / key / "t.mbox.gz").write_bytes(content)
    with archive(tmp_path) as server:
        for mail, reason in {
            "none@x": "the archive has no mail <none@x>",
            "no-id": "“no-id” is no Message-ID",
            f"{server}/all/": "has no Message-ID",
            "damaged@x": "damaged thread",
            "short@x": "ends too early",
            "page@x": "sent no thread of mails",
        }.items():
            assert run_command([*site, "submit", "--lore", mail, "--archive", f"{server}/all"]) == 2
            assert reason in capsys.readouterr().err
    assert run_command([*site, "submit", "--lore", "a@x", "--archive", server]) == 2
    assert "cannot read" in capsys.readouterr().err
    assert run_command([*site, "submit", "--lore", "a@x", "--archive", "ftp://x"]) == 2
    assert "no address of an archive" in capsys.readouterr().err
    assert not Submission.objects.exists()
