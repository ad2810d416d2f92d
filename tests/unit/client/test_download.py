# SPDX-License-Identifier: BSD-2-Clause
"""Downloads continue after an interruption, against a server that interrupts them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfctl import Server, ServerError
from perfctl.download import DamagedError, check_archive, download

CONTENT = bytes(range(256)) * 1000


class Files(BaseHTTPRequestHandler):
    """Sends CONTENT, or a part of it; closes the connection after `breaks` bytes of a response."""

    content = CONTENT
    etag: str | None = '"one"'
    breaks = len(CONTENT)
    ranges: list[str | None] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.ranges.append(wanted)
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
    handler = type("Handler", (Files,), {"ranges": []})
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
    assert handler.ranges == [None, "bytes=100000-", "bytes=200000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_later_call_goes_on_where_an_earlier_one_stopped(files: tuple[Server, type[Files]], tmp_path: Path) -> None:
    server, handler = files
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    (tmp_path / "file.part.etag").write_text('"one"')
    download(server, "/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert handler.ranges == ["bytes=1000-"]


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


def test_a_server_that_sends_nothing_is_not_polled_forever(files: tuple[Server, type[Files]], tmp_path: Path) -> None:
    server, handler = files
    handler.breaks = 0
    with pytest.raises(ServerError):
        download(server, "/file", tmp_path / "file")
    assert len(handler.ranges) <= 5


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


def header(name: str, size: bytes = b"00000000000\0", kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header with any bytes as its size, and a right checksum."""
    info = tarfile.TarInfo(f"run-1/{name}")
    info.type = kind
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = size.ljust(12, b"\0")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def base256(number: int) -> bytes:
    """A size in GNU tar's format for numbers that octal digits cannot hold."""
    return (b"\xff" if number < 0 else b"\x80") + (number % 256**11).to_bytes(11, "big")


END = bytes(1024)


@pytest.mark.parametrize(
    "content",
    [
        header("a") + header("b", base256(-1024)) + END,
        header("a", base256(1 << 60)) + END,
        header("a", b"77777777777\0") + END,
        header("a", b"1" + bytes(11)) + END[:512],
        header("a", b"nonsense") + END,
        header("a", b"00000002000\0", tarfile.GNUTYPE_SPARSE) + END + END,
        header("a", b"00000002000\0", tarfile.XHDTYPE) + END + END,
        header("a", b"00000002000\0", tarfile.GNUTYPE_LONGNAME) + END + END,
        header("a", kind=tarfile.SYMTYPE) + END,
        header("a", kind=tarfile.LNKTYPE) + END,
        header("a") + header("a") + END,
        header("SHA256SUMS", base256(-512)) + END,
        header("a"),
        b"",
    ],
)  # fmt: skip
def test_a_forged_archive_is_damaged(content: bytes, tmp_path: Path) -> None:
    """A negative size leads back to an earlier header, one of a sparse file to an endless row of zeros."""
    (tmp_path / "forged.tar").write_bytes(content)
    with pytest.raises(DamagedError):
        check_archive(tmp_path / "forged.tar")


@given(st.lists(st.tuples(st.binary(max_size=12), st.sampled_from([b"0", b"\0", b"x", b"L", b"S", b"5", b"1"]))))
def test_any_headers_are_read_once(headers: list[tuple[bytes, bytes]]) -> None:
    content = b"".join(header(str(number), size, kind) for number, (size, kind) in enumerate(headers)) + END
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "forged.tar")
        path.write_bytes(content)
        with contextlib.suppress(DamagedError):
            assert check_archive(path) <= len(headers)
