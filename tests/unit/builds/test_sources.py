# SPDX-License-Identifier: BSD-2-Clause
"""Source trees are packed by their content."""

import os
import tarfile
from pathlib import Path

import pytest

from perfweb.builds import services, sources


def tree(folder: Path) -> Path:
    stack = folder / "stack"
    (stack / "net").mkdir(parents=True)
    (stack / "meson.build").write_text("project('x')\n", encoding="utf-8")
    (stack / "net" / "if.c").write_text("int x;\n", encoding="utf-8")
    return stack


def test_same_files_same_archive_whenever_and_wherever(tmp_path: Path) -> None:
    first, second = tree(tmp_path / "a"), tree(tmp_path / "b")
    os.utime(second / "meson.build", (1, 1))
    (second / "build-debug").mkdir()
    (second / "build-debug" / "if.o").write_text("object", encoding="utf-8")
    (second / ".hidden").write_text("editor", encoding="utf-8")
    one = sources.pack_sources(first, tmp_path / "store")
    two = sources.pack_sources(second, tmp_path / "store")
    assert one.sha256 == two.sha256
    with tarfile.open(one.archive) as archive:
        assert archive.getnames() == ["stack/meson.build", "stack/net/if.c"]


def test_changed_file_is_another_build(tmp_path: Path) -> None:
    stack = tree(tmp_path)
    before = sources.pack_sources(stack, tmp_path / "store")
    (stack / "net" / "if.c").write_text("int y;\n", encoding="utf-8")
    after = sources.pack_sources(stack, tmp_path / "store")
    keys = {services.build_key(packed.sha256, options) for packed in (before, after) for options in ([], ["-Da=1"])}
    assert len(keys) == 4


def test_symbolic_links_do_not_reach_out_of_the_tree(tmp_path: Path) -> None:
    stack = tree(tmp_path)
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (stack / "link.c").symlink_to(tmp_path / "secret")
    with tarfile.open(sources.pack_sources(stack, tmp_path / "store").archive) as archive:
        assert "stack/link.c" not in archive.getnames()


def test_nothing_to_build(tmp_path: Path) -> None:
    with pytest.raises(sources.SourceError, match=r"no meson\.build"):
        sources.pack_sources(tmp_path, tmp_path / "store")


def test_requests_that_write_one_file_at_the_same_time_keep_it_whole(tmp_path: Path) -> None:
    target = tmp_path / "store" / "a.tar.gz"
    with sources.whole(target) as first:
        first.write_text("part of ", encoding="utf-8")
        with sources.whole(target) as second:
            second.write_text("all", encoding="utf-8")
        assert target.read_text(encoding="utf-8") == "all"
        first.write_text("all", encoding="utf-8")
    assert target.read_text(encoding="utf-8") == "all"
    with pytest.raises(FileNotFoundError), sources.whole(target) as third:
        third.with_name("missing").read_bytes()
    assert target.read_text(encoding="utf-8") == "all"
    assert list(target.parent.iterdir()) == [target]
