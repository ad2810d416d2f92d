# SPDX-License-Identifier: BSD-2-Clause
"""Builds are named by their content."""

import os
import tarfile
from pathlib import Path

import pytest

from perfweb.builds import services
from perfweb.builds.models import BuildState


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
    one = services.pack_sources(first, tmp_path / "store")
    two = services.pack_sources(second, tmp_path / "store")
    assert one.sha256 == two.sha256
    with tarfile.open(one.archive) as archive:
        assert archive.getnames() == ["stack/meson.build", "stack/net/if.c"]


def test_changed_file_is_another_build(tmp_path: Path) -> None:
    stack = tree(tmp_path)
    before = services.pack_sources(stack, tmp_path / "store")
    (stack / "net" / "if.c").write_text("int y;\n", encoding="utf-8")
    after = services.pack_sources(stack, tmp_path / "store")
    keys = {services.build_key(sources.sha256, options) for sources in (before, after) for options in ([], ["-Da=1"])}
    assert len(keys) == 4


def test_symbolic_links_do_not_reach_out_of_the_tree(tmp_path: Path) -> None:
    stack = tree(tmp_path)
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (stack / "link.c").symlink_to(tmp_path / "secret")
    with tarfile.open(services.pack_sources(stack, tmp_path / "store").archive) as archive:
        assert "stack/link.c" not in archive.getnames()


def test_nothing_to_build(tmp_path: Path) -> None:
    with pytest.raises(services.SourceError, match=r"no meson\.build"):
        services.pack_sources(tmp_path, tmp_path / "store")


@pytest.mark.django_db
def test_build_is_made_once_and_remembers_how(tmp_path: Path) -> None:
    sources = services.pack_sources(tree(tmp_path), tmp_path / "store")
    build = services.named(sources, ["-Dbuildtype=release"])
    assert services.named(sources, ["-Dbuildtype=release"]) == build
    services.succeeded(build, "/prefix", "compiled\0", 12.0)
    services.succeeded(build, "/prefix", "nothing to do", None)
    build.refresh_from_db()
    assert (build.state, build.log, build.seconds) == (BuildState.READY, "compiled?", 12.0)
