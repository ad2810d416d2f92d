# SPDX-License-Identifier: BSD-2-Clause
"""The copy of an untrusted directory tree: only files, directories and links to a neighbour, within fixed limits."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playbooks.module_utils import untrusted_tree
from playbooks.module_utils.untrusted_tree import (
    BYTES_LIMIT,
    DEPTH_LIMIT,
    ENTRY_LIMIT,
    PATH_LIMIT,
    UntrustedTreeError,
    copy_tree,
)

MEGABYTE = 1024 * 1024


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = tmp_path / "source"
    directory.mkdir()
    return directory


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def nest(directory: Path, levels: int, name: str = "d") -> None:
    """Makes directories below each other, of any depth: relative names stay short."""
    descriptor = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)


def unnest(directory: Path) -> None:
    """Remove what `nest` has made, which rmtree cannot: one level at a time, each moved up first."""
    while inner := next(directory.iterdir(), None):
        for deeper in inner.iterdir():
            deeper.rename(directory / "moved")
        inner.rmdir()
        if (directory / "moved").exists():
            (directory / "moved").rename(directory / "d")


def test_files_directories_and_the_links_of_a_library_are_copied(source: Path, target: Path) -> None:
    (source / "lib").mkdir(mode=0)
    (source / "lib" / "libstack.so.1").write_bytes(b"code")
    (source / "lib" / "libstack.so.1").chmod(0o6777)
    (source / "lib" / "libstack.so").symlink_to("libstack.so.1")
    (source / "README").write_text("words")
    os.chown(source / "README", 4711, 4711)
    copy_tree(source, target)
    assert (target / "lib" / "libstack.so").resolve() == target / "lib" / "libstack.so.1"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (target / "lib", *target.rglob("*"))}
    assert modes == {"lib": 0o755, "libstack.so.1": 0o755, "libstack.so": 0o755, "README": 0o644}
    assert (target / "README").stat().st_uid == os.geteuid()
    assert (target / "lib" / "libstack.so.1").read_bytes() == b"code"


def device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def hole(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 42)


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link to a path": (lambda path: path.symlink_to("/etc/passwd"), "only one to a neighbour"),
    "a link upwards": (lambda path: path.symlink_to(".."), "only one to a neighbour"),
    "a link to the directory": (lambda path: path.symlink_to("."), "only one to a neighbour"),
    "a link with an escape": (lambda path: path.symlink_to("\x1b[2J"), "printable"),
    "a pipe": (os.mkfifo, "neither"),
    "a device": (device, "neither"),
    "a socket": (listening, "neither"),
    "a control character": (lambda path: path.with_name("a\nb").touch(), "printable"),
    "no UTF-8": (lambda path: path.with_name("x\udcff").touch(), "printable"),
    "text that runs backwards": (lambda path: path.with_name("\u202egpj.sh").touch(), "printable"),
    "a hole of 4 TB": (hole, "more than"),
    "deep directories": (lambda path: nest(path.parent, DEPTH_LIMIT), "nested deeper"),
    "a long path": (lambda path: nest(path.parent, PATH_LIMIT // 200 + 1, "d" * 200), "more than"),
}


@pytest.mark.parametrize(("plant", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_nothing_else_is_copied(plant: Callable[[Path], object], reason: str, source: Path, target: Path) -> None:
    (source / "before").write_text("a file that is copied first, or not")
    plant(source / "hostile")
    with pytest.raises(UntrustedTreeError, match=reason):
        copy_tree(source, target)
    assert not target.exists()


def test_five_thousand_levels_are_refused(source: Path, target: Path) -> None:
    nest(source, 5000)
    try:
        with pytest.raises(UntrustedTreeError, match="nested deeper"):
            copy_tree(source, target)
    finally:
        unnest(source)
    assert not target.exists()


def test_the_limits_are_exact(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_tree, "BYTES_LIMIT", 3 * MEGABYTE)
    monkeypatch.setattr(untrusted_tree, "ENTRY_LIMIT", 4)
    nest(source, 2)
    for name in ("one", "two"):
        (source / name).write_bytes(bytes(3 * MEGABYTE // 2))
    copy_tree(source, target)
    shutil.rmtree(target)
    with (source / "two").open("ab") as file:
        file.write(b"x")
    with pytest.raises(UntrustedTreeError, match="bytes"):
        copy_tree(source, target)
    (source / "two").write_bytes(b"")
    (source / "three").touch()
    with pytest.raises(UntrustedTreeError, match="files and directories"):
        copy_tree(source, target)


def test_hard_links_count_once_for_each_name(source: Path, target: Path) -> None:
    (source / "0").touch()
    os.truncate(source / "0", 64 * MEGABYTE)
    for number in range(1, BYTES_LIMIT // (64 * MEGABYTE) + 1):
        os.link(source / "0", source / str(number))
    with pytest.raises(UntrustedTreeError, match="bytes"):
        copy_tree(source, target)
    assert not target.exists()


def test_many_files_are_refused(source: Path, target: Path) -> None:
    for number in range(ENTRY_LIMIT + 1):
        (source / str(number)).touch()
    with pytest.raises(UntrustedTreeError, match="files and directories"):
        copy_tree(source, target)


def test_an_existing_target_is_kept(source: Path, target: Path) -> None:
    target.mkdir()
    (target / "precious").touch()
    with pytest.raises(FileExistsError):
        copy_tree(source, target)
    assert (target / "precious").exists()


def test_a_link_in_place_of_the_source_is_not_followed(tmp_path: Path, target: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(OSError, match="Not a directory"):
        copy_tree(tmp_path / "link", target)
    assert not target.exists()


NAMES = st.one_of(
    st.sampled_from([b"a", b"A", b"lib", b"..x", b" ", b"-rf", b"\xff", b"\n", b"d" * 255, "é".encode(), b"build.log"]),
    st.binary(min_size=1, max_size=12).map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"_")),
).filter(lambda name: name not in {b".", b".."})
LINKS = st.one_of(NAMES, st.sampled_from([b"..", b".", b"/etc/passwd", b"a/../../b", b"lib/../..", b"/proc/self/exe"]))
PLANTS = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=40)),
    st.tuples(st.just("hole"), st.integers(0, 1 << 40)),
    st.tuples(st.just("link"), LINKS),
    st.tuples(st.just("hard link"), NAMES),
    st.tuples(st.just("pipe"), st.none()),
    st.tuples(st.just("device"), st.none()),
    st.tuples(st.just("directory"), st.integers(0, 40)),
)
MODES = st.integers(0, 0o7777)


def grow(root: bytes, name: bytes, kind: str, detail: object, mode: int) -> None:
    """Adds an entry, unless the name is taken or too long for the file system."""
    path = root + b"/" + name
    if kind in {"file", "hole"}:
        with open(path, "xb") as file:
            if isinstance(detail, bytes):
                file.write(detail)
            elif isinstance(detail, int):
                file.truncate(detail)
    elif kind == "link":
        os.symlink(detail, path)  # type: ignore[arg-type]
        return
    elif kind == "hard link":
        os.link(root + b"/" + detail, path, follow_symlinks=False)  # type: ignore[operator]
        return
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(7, 200))
    else:
        os.mkdir(path)
        for _ in range(detail if isinstance(detail, int) else 0):
            path += b"/d"
            os.mkdir(path)
    os.chmod(path, mode)


@contextlib.contextmanager
def small_limits() -> Iterator[int]:
    """A limit that generated trees reach."""
    kept = untrusted_tree.BYTES_LIMIT
    untrusted_tree.BYTES_LIMIT = 64
    try:
        yield untrusted_tree.BYTES_LIMIT
    finally:
        untrusted_tree.BYTES_LIMIT = kept


@settings(deadline=None)
@given(st.lists(st.tuples(NAMES, PLANTS, MODES), max_size=8))
def test_of_any_tree_only_plain_entries_within_the_limits_arrive(
    entries: list[tuple[bytes, tuple[str, object], int]],
) -> None:
    with tempfile.TemporaryDirectory() as outside, small_limits() as limit:
        source, target = Path(outside, "source"), Path(outside, "target")
        source.mkdir()
        for name, (kind, detail), mode in entries:
            with contextlib.suppress(OSError):
                grow(os.fsencode(source), name, kind, detail, mode)
        refused = False
        try:
            copy_tree(source, target)
        except UntrustedTreeError:
            refused = True
        assert set(os.listdir(outside)) <= {"source", "target"}
        assert target.exists() is not refused
        found = list(target.rglob("*"))
        assert sum(path.lstat().st_size for path in found if path.is_file() and not path.is_symlink()) <= limit
        for path in found:
            status = path.lstat()
            assert stat.S_IFMT(status.st_mode) in {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}
            assert path.is_symlink() or stat.S_IMODE(status.st_mode) in {0o644, 0o755}
            assert not path.is_symlink() or (os.readlink(path) not in {".", ".."} and "/" not in os.readlink(path))
            assert status.st_uid == os.geteuid()
            assert status.st_nlink == 1 or path.is_dir()
