# SPDX-License-Identifier: BSD-2-Clause
"""Downloads go on where they broke off, against a server that breaks off."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from perfctl import Server, ServerError
from perfctl.download import DamagedError, check_archive, download

CONTENT = bytes(range(256)) * 1000


class Files(BaseHTTPRequestHandler):
    """Sends CONTENT, or a part of it; after `breaks` bytes of an answer it hangs up."""

    content = CONTENT
    etag: str | None = '"one"'
    breaks = len(CONTENT)
    asked: list[str | None] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.asked.append(wanted)
        begin = int((re.search(r"\d+", wanted or "") or ["0"])[0])
        part = bool(wanted and self.etag and self.headers.get("If-Range") == self.etag)
        if part and begin >= len(self.content):
            self.send_error(416)
            return
        body = self.content[begin:] if part else self.content
        self.send_response(206 if part else 200)
        if part:
            self.send_header("Content-Range", f"bytes {begin}-{len(self.content) - 1}/{len(self.content)}")
        if self.etag:
            self.send_header("ETag", self.etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.breaks])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def files() -> Iterator[tuple[Server, type[Files]]]:
    handler = type("Handler", (Files,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield Server(f"http://127.0.0.1:{listening.server_port}"), handler
        listening.shutdown()
        thread.join()


def test_a_broken_download_goes_on_where_it_stopped(files: tuple[Server, type[Files]], tmp_path: Path) -> None:
    server, handler = files
    handler.breaks = 100_000
    download(server, "/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert handler.asked == [None, "bytes=100000-", "bytes=200000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_later_call_goes_on_where_an_earlier_one_stopped(files: tuple[Server, type[Files]], tmp_path: Path) -> None:
    server, handler = files
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    (tmp_path / "file.part.etag").write_text('"one"')
    download(server, "/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert handler.asked == ["bytes=1000-"]


@pytest.mark.parametrize("left", [b"of another file", CONTENT, CONTENT + b"more"])
def test_what_is_left_of_another_file_is_not_used(
    files: tuple[Server, type[Files]], tmp_path: Path, left: bytes
) -> None:
    server, _ = files
    (tmp_path / "file.part").write_bytes(left)
    (tmp_path / "file.part.etag").write_text('"another"' if left == b"of another file" else '"one"')
    download(server, "/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_without_an_entity_tag_a_broken_download_fails(files: tuple[Server, type[Files]], tmp_path: Path) -> None:
    server, handler = files
    handler.etag, handler.breaks = None, 100_000
    with pytest.raises(ServerError, match="100000 of 256000 bytes"):
        download(server, "/file", tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_server_that_sends_nothing_is_not_asked_for_ever(files: tuple[Server, type[Files]], tmp_path: Path) -> None:
    server, handler = files
    handler.breaks = 0
    with pytest.raises(ServerError):
        download(server, "/file", tmp_path / "file")
    assert len(handler.asked) <= 5


def archive(path: Path, sums: str) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in {"samples.csv": b"1\n", "SHA256SUMS": sums.encode()}.items():
            member = tarfile.TarInfo(f"run-1/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_an_archive_is_checked(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"1\n").hexdigest()
    assert check_archive(archive(tmp_path / "good.tar", f"{digest}  samples.csv\n")) == 1
    for name, sums in {"other": f"{64 * '0'}  samples.csv\n", "missing": "", "more": f"{digest}  a\n"}.items():
        with pytest.raises(DamagedError, match=r"samples\.csv"):
            check_archive(archive(tmp_path / f"{name}.tar", sums))
    (tmp_path / "short.tar").write_bytes((tmp_path / "good.tar").read_bytes()[:700])
    with pytest.raises(DamagedError):
        check_archive(tmp_path / "short.tar")
