# SPDX-License-Identifier: BSD-2-Clause
"""Trees of a base and its patches, and their builds, with a small tree that has the make targets of a kernel."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.counted import config
from runners.counted.build import Builder
from runners.counted.command import series
from runners.counted.errors import BuildError, CountedError
from runners.counted.progress import Progress
from runners.counted.sources import Sources
from tests.checkouts import Checkout

MAKEFILE = """\
allnoconfig:
	cp $(KCONFIG_ALLCONFIG) $(O)/.config
prepare:
	@echo '  UPD     version.h'
vmlinux: $(O)/tcp.o $(O)/udp.o
	cat $^ >$(O)/vmlinux
	echo 'ffffffff81000000 T _text' >$(O)/System.map
$(O)/%.o: net/%.c
	@echo '  CC      $*.o'
	$(CC) -Wall -O2 -c $< -o $@
"""
TCP = "int tcp(int a)\n{\n\treturn a + 1;\n}\n"


@pytest.fixture
def linux(tmp_path: Path) -> Checkout:
    tree = tmp_path / "linux"
    tree.mkdir()
    made = Checkout(tree)
    made.put("Makefile", MAKEFILE)
    made.put("Kconfig", "")
    made.put("net/tcp.c", TCP)
    made.put("net/udp.c", "static int unused;\n")
    (tree / "link").symlink_to("net")
    made.put(".gitignore", "/*\n")  # as in Debian's package
    made.git("add", "--force", ".")
    made.commit("The first")
    return made


@pytest.fixture
def sources(linux: Checkout, tmp_path: Path) -> Sources:
    return Sources(linux.tree, tmp_path / "var")


class Recorded(Progress):
    """Keeps what a terminal would show."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())
        self.shown: list[str] = []

    def detail(self, text: str) -> None:
        self.shown.append(text)


@pytest.fixture
def progress() -> Recorded:
    return Recorded()


@pytest.fixture
def builder(sources: Sources, progress: Recorded, tmp_path: Path) -> Builder:
    return Builder(sources, tmp_path / "kernels", config.fragment(), progress)


def changed(linux: Checkout, change: Callable[[str], str], *words: str) -> bytes:
    linux.edit("net/tcp.c", change)
    return linux.diff(*words)


def more(text: str) -> str:
    return text.replace("a + 1", "a + 2")


def test_a_clone_and_a_directory_of_the_same_files_are_the_same_tree(sources: Sources, linux: Checkout) -> None:
    shutil.copytree(linux.tree, linux.tree.parent / "plain", symlinks=True, ignore=shutil.ignore_patterns(".git"))
    plain = Sources(linux.tree.parent / "plain", sources.folder.parent)
    assert sources.base_tree() == plain.base_tree()
    assert plain.check_out(plain.base_tree()).joinpath("link").is_symlink()


def test_the_tree_of_a_clone_is_that_of_a_commit(sources: Sources, linux: Checkout) -> None:
    first = sources.base_tree()
    linux.edit("net/tcp.c", more)
    assert sources.base_tree() == first
    linux.commit("The second")
    assert (sources.base_tree() == first, sources.base_tree("main") == first) == (False, False)
    with pytest.raises(CountedError, match=r"no commit “mian”.*did you mean main"):
        sources.base_tree("mian")


@pytest.mark.parametrize("words", [(), ("--no-prefix",), ("--src-prefix=linux-6.1.orig/", "--dst-prefix=linux-6.1/")])
def test_patches_of_all_prefixes_apply(sources: Sources, linux: Checkout, words: tuple[str, ...]) -> None:
    tree = sources.patched(sources.base_tree(), "my.patch", changed(linux, more, *words))
    assert (sources.check_out(tree) / "net/tcp.c").read_text() == more(TCP)
    assert (linux.tree / "net/tcp.c").read_text() == TCP


def test_a_work_tree_changes_where_trees_differ(sources: Sources, linux: Checkout) -> None:
    base = sources.base_tree()
    work_tree = sources.check_out(base)
    before = {path: path.stat().st_mtime_ns for path in work_tree.rglob("*.c")}
    sources.check_out(sources.patched(base, "my.patch", changed(linux, more)))
    sources.check_out(base)
    after = {path: path.stat().st_mtime_ns for path in work_tree.rglob("*.c")}
    assert [path.name for path in before if before[path] != after[path]] == ["tcp.c"]


def test_a_work_tree_that_was_edited_is_put_right(sources: Sources) -> None:
    work_tree = sources.check_out(sources.base_tree())
    (work_tree / "net/tcp.c").write_text("edited")
    sources.check_out(sources.base_tree())
    assert (work_tree / "net/tcp.c").read_text() == TCP


def test_a_patch_that_does_not_apply_is_shown_with_the_text_of_the_base(sources: Sources, linux: Checkout) -> None:
    patch = changed(linux, more).replace(b"a + 1", b"a + 7")
    with pytest.raises(
        CountedError, match=r"my.patch: The patch does not apply: net/tcp.c differs .* at line 1"
    ) as error:
        sources.patched(sources.base_tree(), "my.patch", patch)
    assert "-\treturn a + 7;" in str(error.value)
    assert "\treturn a + 1;" in str(error.value)


def test_what_is_no_patch_and_what_is_no_kernel_is_refused(sources: Sources, tmp_path: Path) -> None:
    with pytest.raises(CountedError, match=r"x: This has no diff"):
        sources.patched(sources.base_tree(), "x", b"Hello\n")
    with pytest.raises(CountedError, match="nowhere is no directory"):
        Sources(tmp_path / "nowhere", tmp_path / "var")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CountedError, match="no source tree of Linux"):
        Sources(tmp_path / "empty", tmp_path / "var").base_tree()
    with pytest.raises(CountedError, match=r"no git repository: it has no commit “v6\.1”"):
        Sources(tmp_path / "empty", tmp_path / "var").base_tree("v6.1")


def test_a_kernel_is_built_once_for_each_tree(
    sources: Sources, builder: Builder, progress: Recorded, linux: Checkout
) -> None:
    base = sources.base_tree()
    first = builder.kernel(base)
    progress.shown.clear()
    patched = builder.kernel(sources.patched(base, "my.patch", changed(linux, more)), base)
    assert [text for text in progress.shown if "files" in text] == ["1 files, tcp.o"]
    assert first.image.read_bytes() != patched.image.read_bytes()
    progress.shown.clear()
    assert (builder.kernel(base), progress.shown) == (first, [])


def test_a_first_build_and_a_continued_one_show_a_bar(
    sources: Sources, builder: Builder, progress: Recorded, linux: Checkout
) -> None:
    broken = sources.patched(sources.base_tree(), "x", changed(linux, lambda text: text.replace("a + 1", "b")))
    linux.git("checkout", "-q", ".")
    with pytest.raises(BuildError):
        builder.kernel(broken)
    progress.shown.clear()
    builder.kernel(sources.base_tree())
    bars = [text.partition("] ")[2] for text in progress.shown if text.startswith("[")]
    assert bars[-1] in {"1 of 1 files", "2 of 2 files"}  # make may have made the other file before it failed
    assert progress.shown[-1].startswith(f"[{'#' * 30}]")


def test_only_warnings_that_the_base_has_not_are_new(sources: Sources, builder: Builder, linux: Checkout) -> None:
    base = builder.kernel(sources.base_tree())
    assert "unused" in base.printed
    linux.put("net/udp.c", "\nstatic int unused;\nstatic int another;\n")
    patched = builder.kernel(sources.patched(sources.base_tree(), "my.patch", linux.diff()), sources.base_tree())
    (warning,) = builder.new_warnings(base, patched)
    assert (warning.path, warning.line) == ("net/udp.c", 3)
    assert "another" in warning.text


def test_a_second_version_of_a_patch_prints_the_warnings_of_the_first_again(
    sources: Sources, builder: Builder, linux: Checkout
) -> None:
    base = builder.kernel(sources.base_tree())
    with_warning = "static int another;\n"
    for change in (str, more):
        linux.put("net/udp.c", f"static int unused;\n{with_warning}")
        linux.edit("net/tcp.c", change)
        patched = builder.kernel(sources.patched(sources.base_tree(), "my.patch", linux.diff()), sources.base_tree())
        assert [warning.path for warning in builder.new_warnings(base, patched)] == ["net/udp.c"]


def test_the_callers_variables_do_not_change_a_kernel(
    sources: Sources, builder: Builder, linux: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    linux.put("Makefile", MAKEFILE.replace("-Wall", "-Wall $(KCFLAGS)"))
    linux.commit("as in Linux")
    monkeypatch.setenv("KCFLAGS", "-DHERE=nowhere -Werror")
    monkeypatch.setenv("MAKEFLAGS", "n")
    assert builder.kernel(sources.base_tree()).image.exists()


def test_a_work_tree_of_a_clone_is_a_base(sources: Sources, linux: Checkout, tmp_path: Path) -> None:
    linux.git("worktree", "add", "-q", "--detach", str(tmp_path / "second"))
    assert Sources(tmp_path / "second", tmp_path / "var").base_tree() == sources.base_tree()


def test_a_directory_is_a_base_after_a_killed_git(sources: Sources, linux: Checkout) -> None:
    shutil.copytree(linux.tree, linux.tree.parent / "plain", symlinks=True, ignore=shutil.ignore_patterns(".git"))
    plain = Sources(linux.tree.parent / "plain", sources.folder.parent)
    first = plain.base_tree()
    (lock,) = [path.parent / "base-index.lock" for path in plain.folder.rglob("base-index")]
    lock.touch()
    assert plain.base_tree() == first


def test_files_of_a_numbered_series_are_applied_as_one(sources: Sources, linux: Checkout) -> None:
    linux.edit("net/tcp.c", more)
    linux.commit("tcp: two")
    linux.edit("net/tcp.c", lambda text: text.replace("a + 2", "a + 3"))
    linux.commit("tcp: three")
    wanted = sources.base_tree()
    linux.git("format-patch", "-q", "-2", "--cover-letter")
    names = sorted(linux.tree.glob("*.patch"))
    made = series([(path.name, path.read_bytes()) for path in names])
    assert [name for name, _ in made] == ["0000-cover-letter.patch and 2 more"]
    first = linux.git("rev-parse", "main~2").decode().strip()
    assert sources.patched(sources.base_tree(first), *made[0]) == wanted
    diffs = [("a.diff", b"diff --git"), ("b.diff", b"diff --git")]
    assert series(diffs) == diffs


def test_a_build_that_fails_has_the_compilers_words_and_leaves_no_kernel(
    sources: Sources, builder: Builder, linux: Checkout
) -> None:
    tree = sources.patched(sources.base_tree(), "my.patch", changed(linux, lambda text: text.replace("a + 1", "b")))
    for _ in range(2):
        with pytest.raises(BuildError, match=r"does not build:\nnet/tcp.c:3: error: 'b' undeclared") as error:
            builder.kernel(tree)
    assert "|         return b;" in str(error.value)
    assert list(builder.kernels.iterdir()) == []


def test_a_tree_without_an_option_of_the_lane_is_refused(sources: Sources, linux: Checkout, builder: Builder) -> None:
    linux.put("Makefile", MAKEFILE.replace("cp $(KCONFIG_ALLCONFIG)", "grep -v VETH $(KCONFIG_ALLCONFIG) >"))
    linux.commit("without veth")
    with pytest.raises(CountedError, match="cannot be configured for this lane: CONFIG_VETH is n"):
        builder.kernel(sources.base_tree())
