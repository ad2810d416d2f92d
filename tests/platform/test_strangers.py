# SPDX-License-Identifier: BSD-2-Clause
"""Whatever an archive holds, what comes of it stays in its directory."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playbooks.module_utils.strangers import TOTAL_LIMIT, StrangeArchiveError, unpack

PARTS = st.sampled_from(["a", "b", "lib", "..", ".", "", "x\udcff", "d" * 300])
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
TYPES = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


def packed(*members: tarfile.TarInfo) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info in members:
            tar.addfile(info)
    file.seek(0)
    return file


def test_files_directories_and_the_links_of_a_library_are_taken(tmp_path: Path) -> None:
    members = [
        member(".", tarfile.DIRTYPE), member("./lib", tarfile.DIRTYPE), member("./lib/libstack.so.1", mode=0o6777),
        member("./lib/libstack.so", tarfile.SYMTYPE, "libstack.so.1"), member("./README"),
    ]  # fmt: skip
    unpack(packed(*members), tmp_path)
    assert (tmp_path / "lib" / "libstack.so").resolve() == tmp_path / "lib" / "libstack.so.1"
    assert (tmp_path / "lib" / "libstack.so.1").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "README").stat().st_mode & 0o7777 == 0o644


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([member("../x")], "leads out"),
        ([member("/etc/x")], "leads out"),
        ([member("x", tarfile.SYMTYPE, "/etc/passwd")], "neither"),
        ([member("x", tarfile.SYMTYPE, "..")], "neither"),
        ([member("x", tarfile.SYMTYPE, "y"), member("x")], "File exists"),
        ([member("x", tarfile.LNKTYPE, "/etc/passwd")], "neither"),
        ([member("x", tarfile.CHRTYPE)], "neither"),
        ([member("x")] * 2, "File exists"),
    ],
)
def test_nothing_else_is(members: list[tarfile.TarInfo], reason: str, tmp_path: Path) -> None:
    with pytest.raises(StrangeArchiveError, match=reason):
        unpack(packed(*members), tmp_path)


def test_what_is_small_only_in_the_archive_is_refused_before_it_is_written(tmp_path: Path) -> None:
    info = member("zeros")
    info.size = TOTAL_LIMIT + 1
    with pytest.raises(StrangeArchiveError, match="more than"):
        unpack(io.BytesIO(info.tobuf(tarfile.GNU_FORMAT)), tmp_path)
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.tuples(NAMES, TYPES, NAMES), max_size=6))
def test_any_members_stay_inside(entries: list[tuple[str, bytes, str]]) -> None:
    with tempfile.TemporaryDirectory() as outside:
        directory = Path(outside, "inside")
        directory.mkdir()
        archive = packed(*(member(name, kind, link) for name, kind, link in entries))
        with contextlib.suppress(StrangeArchiveError):
            unpack(archive, directory)
        assert os.listdir(outside) == ["inside"]
        for path in directory.rglob("*"):
            assert path.is_symlink() or path.is_file() or path.is_dir()
            assert not path.is_symlink() or "/" not in os.readlink(path)


@given(st.binary(max_size=2000))
def test_any_bytes_are_an_archive_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory, contextlib.suppress(StrangeArchiveError):
        unpack(io.BytesIO(content), Path(directory))
