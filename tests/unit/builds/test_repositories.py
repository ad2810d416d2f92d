# SPDX-License-Identifier: BSD-2-Clause
"""git itself applies patches, and a patch can change nothing but the stack."""

import os
import re
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfweb.builds.bases import expected_files
from perfweb.builds.kinds import LINUX
from perfweb.builds.patches import PatchError, read_series
from perfweb.builds.repositories import ConflictError, Repository, RepositoryError, Stage
from perfweb.builds.sources import SourceError, pack_sources
from tests.checkouts import IF_C, Checkout


def apply(checkout: Checkout, content: bytes) -> list[Stage]:
    repository = Repository.at(checkout.tree)
    with repository.bench() as bench:
        return bench.apply(read_series(content), repository.commit())


def new_file(path: str, mode: str = "100644", content: str = "x") -> bytes:
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{content}\n"
    ).encode()


def test_every_stage_of_a_series_is_a_tree(checkout: Checkout, series: bytes, tmp_path: Path) -> None:
    repository = Repository.at(checkout.tree)
    base = repository.commit()
    with repository.bench() as bench:
        stages = bench.apply(read_series(series), base)
        packed = [bench.pack(stage.tree, tmp_path, "x") for stage in stages]
    assert [[(file.path, file.added, file.removed) for file in stage.files] for stage in stages] == [
        [("stack/net/if.c", 1, 1)],
        [("stack/net/if.c", 1, 1)],
    ]
    texts = []
    for sources in packed:
        with tarfile.open(sources.archive) as archive:
            member = archive.extractfile("stack/net/if.c")
            assert member is not None
            texts.append(member.read().decode())
    once = IF_C.replace("line5;", "five;")
    assert texts == [once, once.replace("line30;", "thirty;")]


def test_base_is_packed_as_the_directory_is(checkout: Checkout, tmp_path: Path) -> None:
    """So the build of the baseline is shared with other runs."""
    checkout.put("stack/build/if.o", "object")
    checkout.put("stack/.hidden", "editor")
    checkout.commit("litter")
    repository = Repository.at(checkout.tree)
    with repository.bench() as bench:
        packed = bench.pack(repository.commit().sha, tmp_path, "x")
    assert packed.sha256 == pack_sources(checkout.tree / "stack", tmp_path).sha256


def test_repository_is_only_read(checkout: Checkout, series: bytes) -> None:
    def state() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in checkout.tree.rglob("*") if path.is_file()}

    before = state()
    apply(checkout, series)
    assert state() == before


def test_hooks_and_filters_of_the_repository_do_not_run(checkout: Checkout, tmp_path: Path) -> None:
    called = tmp_path / "called"
    hook = checkout.tree / ".git/hooks/post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch {called}\n", encoding="utf-8")
    hook.chmod(0o755)
    checkout.put("stack/net/new.c", "int x;\n")
    apply(checkout, checkout.diff())
    called.unlink(missing_ok=True)  # the test's git runs it, too
    apply(checkout, new_file("stack/net/other.c"))
    assert not called.exists()


def test_work_tree_that_was_added_to_a_repository(checkout: Checkout, tmp_path: Path) -> None:
    checkout.git("worktree", "add", "-q", str(tmp_path / "added"))
    repository = Repository.at(tmp_path / "added")
    with repository.bench() as bench:
        (stage,) = bench.apply(read_series(new_file("stack/new.c")), repository.commit())
    assert stage.files[0].path == "stack/new.c"


def test_bare_repository(checkout: Checkout, tmp_path: Path) -> None:
    checkout.git("clone", "-q", "--mirror", ".", str(tmp_path / "bare"))
    base = Repository.at(tmp_path / "bare").commit("main")
    assert base.sha == checkout.git("rev-parse", "HEAD").decode().strip()
    assert base.sha.startswith(base.revision)


def test_diff_without_prefixes(checkout: Checkout) -> None:
    checkout.edit("stack/net/if.c", lambda text: text.replace("line5", "five"))
    (stage,) = apply(checkout, checkout.diff("--no-prefix"))
    assert stage.files[0].path == "stack/net/if.c"


@pytest.mark.parametrize("prefixes", ["ab", "iw", "cw", "ci", "ow", "co", "wi", "12"])
def test_diff_with_the_prefixes_of_any_comparison(checkout: Checkout, prefixes: str) -> None:
    """git-config(1), diff.mnemonicPrefix: index, work tree, commit, object; reversed by git diff -R."""
    checkout.edit("stack/net/if.c", lambda text: text.replace("line5", "five"))
    checkout.put("stack/net/new.c", "int made;\n")
    checkout.git("mv", "stack/meson.build", "stack/a b.build")
    old, new = list(prefixes)
    (stage,) = apply(checkout, checkout.diff(f"--src-prefix={old}/", f"--dst-prefix={new}/", "-M"))
    assert {file.path for file in stage.files} == {
        "stack/net/if.c", "stack/net/new.c", "stack/meson.build", "stack/a b.build"
    }  # fmt: skip


@pytest.mark.parametrize("words", [[], ["HEAD"], ["--cached"], ["-R"]])
@pytest.mark.parametrize("setting", ["diff.mnemonicPrefix", "diff.noprefix"])
def test_what_git_diff_prints_with_a_setting_of_its_prefixes(
    checkout: Checkout, words: list[str], setting: str
) -> None:
    checkout.edit("stack/net/if.c", lambda text: text.replace("line5", "five"))
    if words == ["--cached"]:
        checkout.git("add", "--all")
    if words == ["-R"]:
        checkout.commit("meanwhile")
        checkout.edit("stack/net/if.c", lambda text: text.replace("five", "line5"))
    diff = checkout.git("-c", f"{setting}=true", "diff", *words)
    checkout.git("reset", "-q", "--hard", *(["HEAD~1"] if words == ["-R"] else []))
    (stage,) = apply(checkout, diff)
    assert [(file.path, file.added, file.removed) for file in stage.files] == [("stack/net/if.c", 1, 1)]


OTHER_HEADS = {
    "Subversion": "Index: {0}\n=====\n--- {0}\t(revision 1)\n+++ {0}\t(working copy)\n",
    "CVS": """\
Index: {0}
===================================================================
RCS file: /cvs/src/{0},v
retrieving revision 1.12
diff -u -p -r1.12 if.c
--- {0}\t1 Jan 2026 00:00:00 -0000\t1.12
+++ {0}\t2 Jan 2026 00:00:00 -0000
""",
    "Mercurial": """\
diff -r 0123456789ab {0}
--- a/{0}\tFri Nov 27 10:00:00 2026 +0000
+++ b/{0}\tFri Nov 27 10:01:00 2026 +0000
""",
    "diff": "--- {0}.orig\t2026-11-27 10:00:00.000000000 +0000\n+++ {0}\t2026-11-27 10:01:00.000000000 +0000\n",
}


@pytest.mark.parametrize("program", OTHER_HEADS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_diff_of_another_program(checkout: Checkout, program: str, end: str) -> None:
    hunk = "@@ -1,3 +1,4 @@\n+int line0;\n int line1;\n int line2;\n int line3;\n"
    text = OTHER_HEADS[program].format("stack/net/if.c") + hunk
    (stage,) = apply(checkout, text.replace("\n", end).encode())
    assert [(file.path, file.added, file.removed) for file in stage.files] == [("stack/net/if.c", 1, 0)]


def test_latin_1_in_a_file_is_kept(checkout: Checkout, tmp_path: Path) -> None:
    checkout.put("stack/net/if.c", IF_C.encode() + b"/* Gr\xf6\xdfe */\n")
    wanted = pack_sources(checkout.tree / "stack", tmp_path).sha256
    diff = checkout.diff()
    repository = Repository.at(checkout.tree)
    with repository.bench() as bench:
        (stage,) = bench.apply(read_series(diff), repository.commit())
        assert bench.pack(stage.tree, tmp_path, "x").sha256 == wanted


def test_conflict_shows_the_hunk_and_what_is_there(checkout: Checkout, series: bytes) -> None:
    checkout.edit("stack/net/if.c", lambda text: text.replace("line30;", "another;"))
    checkout.commit("meanwhile")
    with pytest.raises(ConflictError) as caught:
        apply(checkout, series)
    assert str(caught.value).startswith("Patch 2 of 2 “net: name thirty” does not apply: stack/net/if.c differs")
    assert caught.value.hunk.startswith("@@ -27,7 +27,7 @@")
    assert "-int line30;\n+int thirty;" in caught.value.hunk
    assert "int another;" in caught.value.there.splitlines()
    assert len(caught.value.there.splitlines()) == 7


def test_file_that_is_not_there(checkout: Checkout) -> None:
    diff = b"--- a/stack/no.c\n+++ b/stack/no.c\n@@ -1 +1 @@\n-a\n+b\n"
    with pytest.raises(ConflictError, match=r"stack/no\.c is not in the base"):
        apply(checkout, diff)
    with pytest.raises(ConflictError, match=r"stack/net/if\.c is in the base already"):
        apply(checkout, new_file("stack/net/if.c"))


LINK = "new file mode 120000\n--- /dev/null\n+++ b/stack/x\n@@ -0,0 +1 @@\n+/etc/shadow\n\\ No newline at end of file\n"
HOSTILE = {
    "dots": (new_file("stack/../../etc/x"), "which may not be"),
    "outside": (new_file("perfweb/x.py"), "changes perfweb/x.py; a patch may change files below stack/"),
    "beside": (new_file("stackx/x.py"), "a patch may change files below stack/"),
    "absolute": (b"--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", "names /etc/passwd"),
    "absolute inside": (new_file("/etc/x"), "The patch"),
    "git": (new_file("stack/.git/hooks/post-checkout"), "which may not be"),
    "GIT": (new_file("stack/.GIT/config"), "which may not be"),
    "short name": (new_file("stack/git~1/config"), "which may not be"),
    "link": (f"diff --git a/stack/x b/stack/x\n{LINK}".encode(), "stack/x a symbolic link"),
    "submodule": (new_file("stack/sub", "160000", "Subproject commit " + "a" * 40), "stack/sub a submodule"),
    "rename out": (
        b"diff --git a/stack/net/if.c b/if.c\nsimilarity index 100%\nrename from stack/net/if.c\nrename to if.c\n",
        "changes if.c",
    ),
    "rename in": (
        b"diff --git a/README.md b/stack/x\nsimilarity index 100%\nrename from README.md\nrename to stack/x\n",
        "changes README.md",
    ),
    "40 folders": (new_file("stack/" + "a/" * 40 + "x"), "32 folders at most"),
    "a long name": (new_file("stack/" + "/".join(["a" * 200] * 6)), "1000 characters"),
    "50 000 folders": (new_file("stack/" + "a/" * 50_000 + "x"), "more than 1000 characters"),
    "control characters": (
        b'diff --git "a/stack/\\033[2J" "b/stack/\\033[2J"\nnew file mode 100644\n',
        "control characters",
    ),
    "cut": (b"--- a/stack/net/if.c\n+++ b/stack/net/if.c\n@@ -1,3 +1,3 @@\n int line1;\n", "cannot be read"),
    "nothing": (b"diff --git a/stack/net/if.c b/stack/net/if.c\n", "The patch"),
    "option": (b"diff --git a/stack/x b/stack/x\n--- --help\n+++ --help\n@@ -1 +1 @@\n-a\n+b\n", "The patch"),
}


@pytest.mark.parametrize("prefix", [[], ["--no-prefix"]])
def test_a_patch_of_linux_may_change_every_file(checkout: Checkout, prefix: list[str]) -> None:
    checkout.edit("README.md", lambda text: text + "More.\n")
    checkout.put("net/ipv4/tcp.c", "int tcp;\n")
    series = read_series(checkout.diff(*prefix))
    repository = Repository.at(checkout.tree, LINUX)
    with repository.bench() as bench:
        (stage,) = bench.apply(series, repository.commit())
    assert [file.path for file in stage.files] == ["README.md", "net/ipv4/tcp.c"]
    readme = checkout.git("rev-parse", "HEAD:README.md").decode()
    expected = dict(expected_files(series, LINUX))
    assert (readme.startswith(expected["README.md"]), expected["net/ipv4/tcp.c"]) == (True, "")


def test_linux_is_packed_without_what_it_does_not_compile(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = ("Documentation/net.rst", "arch/arm/mm/fault.c", "drivers/gpu/drm/drm.h", "fs/xfs/xfs.c")
    kept = ("drivers/gpu/Kconfig", "arch/arm/Makefile", "drivers/net/veth.c", "net/ipv4/tcp.c", "fs/open.c")
    for name in (*left_out, *kept):
        checkout.put(name, "int x;\n")
    commit = checkout.commit("a kernel")
    with Repository.at(checkout.tree, LINUX).bench() as bench:
        packed = bench.pack(commit, tmp_path / "store", "x")
        with tarfile.open(packed.archive) as archive:
            names = set(archive.getnames())
        assert {f"linux/{name}" for name in kept} <= names
        assert not {f"linux/{name}" for name in left_out} & names
        assert bench.pack(commit, tmp_path / "store", "y").archive == packed.archive
        monkeypatch.setattr("perfweb.builds.repositories.MOST_BYTES", 10)
        with pytest.raises(PatchError, match="The packed sources have"):
            bench.pack(commit, tmp_path / "other", "x")
    assert [path.name for path in (tmp_path / "store").iterdir()] == [packed.archive.name]
    assert not any((tmp_path / "other").iterdir())


@pytest.mark.parametrize("name", ["link", "submodule", "git", "dots", "40 folders", "control characters", "cut"])
def test_a_hostile_diff_of_linux_is_refused(checkout: Checkout, name: str) -> None:
    content, sentence = HOSTILE[name]
    repository = Repository.at(checkout.tree, LINUX)
    with repository.bench() as bench, pytest.raises(PatchError, match=re.escape(sentence)):
        bench.apply(read_series(content), repository.commit())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_diff_is_refused_with_a_sentence(checkout: Checkout, name: str) -> None:
    content, sentence = HOSTILE[name]
    with pytest.raises(PatchError, match=re.escape(sentence)):
        apply(checkout, content)


def test_link_by_a_change_of_mode(checkout: Checkout) -> None:
    os.symlink("/etc/shadow", checkout.tree / "stack/link")
    (checkout.tree / "stack/net/if.c").unlink()
    os.symlink("/etc/passwd", checkout.tree / "stack/net/if.c")
    with pytest.raises(PatchError, match="a symbolic link"):
        apply(checkout, checkout.diff())


def test_patch_that_takes_the_build_away(checkout: Checkout, tmp_path: Path) -> None:
    checkout.git("rm", "-q", "stack/meson.build")
    diff = checkout.diff()
    repository = Repository.at(checkout.tree)
    with repository.bench() as bench, pytest.raises(SourceError, match=r"no meson\.build"):
        bench.pack(bench.apply(read_series(diff), repository.commit())[0].tree, tmp_path, "x")


def test_many_copies_of_a_file_are_too_much(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfweb.builds.repositories.MOST_BYTES", 2 * len(IF_C))
    head = "diff --git a/stack/net/if.c b/stack/c{0}\nsimilarity index 100%\n"
    copies = "".join(f"{head}copy from stack/net/if.c\ncopy to stack/c{{0}}\n".format(number) for number in range(3))
    repository = Repository.at(checkout.tree)
    with repository.bench() as bench, pytest.raises(PatchError, match="would have more than"):
        bench.pack(bench.apply(read_series(copies.encode()), repository.commit())[0].tree, tmp_path, "x")


@pytest.mark.parametrize("name", ["nosuch", "--help", "HEAD..main", "HEAD@{1}", ":/first", "a b", ""])
def test_names_of_no_commit(checkout: Checkout, name: str) -> None:
    with pytest.raises(RepositoryError, match="no commit"):
        Repository.at(checkout.tree).commit(name)


def test_the_error_for_a_tree_without_git_states_it(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="is no git repository"):
        Repository.at(tmp_path)


LINES = st.lists(
    st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]), max_size=12), max_size=30
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=LINES, after=LINES, final=st.booleans())
def test_what_git_prints_applies(checkout: Checkout, before: list[str], after: list[str], final: bool) -> None:
    checkout.put("stack/f.c", "".join(f"{line}\n" for line in before))
    checkout.git("add", "--all")
    checkout.git("commit", "-q", "--allow-empty", "-m", "before")
    checkout.put("stack/f.c", "\n".join(after) + ("\n" if final else ""))
    checkout.git("add", "--all")
    wanted = checkout.git("write-tree").decode().strip()
    diff = checkout.diff()
    if not diff:
        return
    assert apply(checkout, diff)[-1].tree == wanted
