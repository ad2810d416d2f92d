# SPDX-License-Identifier: BSD-2-Clause
"""Mirrors of repositories elsewhere, and changes there as a patch that applies."""

import fcntl
import os
import subprocess
import threading
from pathlib import Path

import pytest
from pytest_django import Settings

from perfweb.builds import mirrors
from perfweb.builds.models import Mirror
from perfweb.builds.patches import PatchError, read_series
from perfweb.builds.repositories import Repository, RepositoryError
from tests.checkouts import Checkout
from tests.silent import SilentServer

PULL = "refs/pull/7/head"


@pytest.fixture
def pulled(checkout: Checkout, settings: Settings, tmp_path: Path) -> Mirror:
    """A mirror of a checkout with a pull request of two commits, where main has moved on."""
    settings.PERFWEB_VAR = tmp_path / "var"
    checkout.edit("stack/net/if.c", lambda text: text.replace("line5;", "five;"))
    checkout.put("docs/x.md", "Five.\n")
    checkout.commit("net: name five")
    checkout.edit("stack/net/if.c", lambda text: text.replace("line30;", "thirty;"))
    checkout.commit("net: name thirty")
    checkout.git("update-ref", PULL, "HEAD")
    checkout.git("reset", "-q", "--hard", "HEAD~2")
    checkout.put("stack/other.c", "int other;\n")
    checkout.commit("The next")
    return Mirror(name="demo", url=str(checkout.tree))


@pytest.mark.parametrize("each", [False, True])
def test_changes_are_a_patch_that_applies_where_they_began(pulled: Mirror, checkout: Checkout, *, each: bool) -> None:
    found = mirrors.changes(mirrors.fetch(pulled, PULL), "main", PULL, each=each)
    assert found.base == checkout.git("rev-parse", "HEAD~1").decode().strip()
    assert found.head == checkout.git("rev-parse", PULL).decode().strip()
    repository, series = mirrors.opened(pulled), read_series(found.patch)
    assert (series.base, found.head.encode() in found.patch) == (found.base, True)
    with repository.bench() as bench:
        stages = bench.apply(series, repository.commit(found.base))
    assert [[file.path for file in stage.files] for stage in stages] == [["stack/net/if.c"]] * (2 if each else 1)


def test_a_copy_follows_what_is_fetched(pulled: Mirror, checkout: Checkout) -> None:
    first = mirrors.fetch(pulled).commit("main")
    checkout.git("commit", "-q", "--amend", "-m", "Another")
    assert mirrors.opened(pulled).commit("main") == first
    assert mirrors.fetch(pulled).commit("main").sha == checkout.git("rev-parse", "HEAD").decode().strip() != first.sha


def test_what_changes_nothing_or_is_unrelated_is_reported(pulled: Mirror, checkout: Checkout) -> None:
    checkout.git("checkout", "-q", "--orphan", "unrelated")
    checkout.commit("Unrelated")
    checkout.git("update-ref", "refs/pull/9/head", "HEAD")
    repository = mirrors.fetch(pulled, "refs/pull/9/head")
    with pytest.raises(PatchError, match="Nothing below stack/ is changed"):
        mirrors.changes(repository, "main", "refs/heads/main")
    with pytest.raises(RepositoryError, match="no commit in common with main"):
        mirrors.changes(repository, "main", "refs/pull/9/head")


def test_what_cannot_be_fetched_is_reported(pulled: Mirror, tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match=r"cannot be fetched: .*refs/pull/1000/head"):
        mirrors.fetch(pulled, "refs/pull/1000/head")
    with pytest.raises(RepositoryError, match="cannot be fetched: "):
        mirrors.fetch(Mirror(name="none", url=str(tmp_path / "none")))
    with pytest.raises(RepositoryError, match="no git repository"):
        mirrors.opened(Mirror(name="never", url="/x"))


@pytest.mark.parametrize(
    "ref",
    ["--upload-pack=touch x", "-x", "main", "refs/heads/x:refs/heads/main", "+refs/x", "refs/*", "refs/../../x",
     "refs/x\n", "refs/x ", "^refs/x", "refs/\u0445", "refs/x@{1}", "refs/a..b"],
)  # fmt: skip
def test_a_ref_is_one_ref_and_no_option(pulled: Mirror, ref: str) -> None:
    with pytest.raises(RepositoryError, match=r"names no commit|is no ref"):
        mirrors.fetch(pulled, ref)


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "x\n", "-"])
def test_a_copy_lies_among_the_copies(pulled: Mirror, name: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*.git"))
    pulled.name = name
    if name == "-":
        assert mirrors.fetch(pulled).git_dir.parent == tmp_path / "var" / "repositories"
        return
    with pytest.raises(RepositoryError, match="is no name of a repository"):
        mirrors.fetch(pulled)
    assert sorted(tmp_path.rglob("*.git")) == before


def test_too_much_is_refused(pulled: Mirror, checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "MOST_BYTES", 100)
    with pytest.raises(RepositoryError, match="cannot be fetched: "):
        mirrors.fetch(pulled)
    monkeypatch.setattr("perfweb.builds.repositories.PATCH_BYTES", 10)
    with pytest.raises(PatchError, match="more than 10 bytes"), Repository.at(checkout.tree).bench() as bench:
        bench.patch("HEAD~1", "HEAD", each=False)


def test_where_may_be_fetched_from() -> None:
    good = ("https://example.org/a/b.git", "http://127.0.0.1:1/x", "http://localhost/x", "/srv/x")
    assert [mirrors.check(url) for url in good] == ["https", "http", "http", "file"]
    for url in ("http://example.org/x", "ext::sh -c id", "ssh://git@example.org/x", "--upload-pack=x", "a@b:c", "", "https:///x",
                "https://me:secret@example.org/x"):  # fmt: skip
        with pytest.raises(RepositoryError):
            mirrors.check(url)


@pytest.mark.parametrize(("old", "new"), [("topic", "topic/x"), ("topic/x", "topic"), ("a/b/c", "a/b"), ("a", "a/b/c")])
@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_renamed_branch_does_not_block_later_fetches(
    pulled: Mirror, checkout: Checkout, old: str, new: str, kind: str
) -> None:
    checkout.git(kind, old)
    mirrors.fetch(pulled, PULL)
    checkout.git(kind, "-D" if kind == "branch" else "-d", old)
    checkout.git(kind, new)
    repository = mirrors.fetch(pulled, PULL)
    assert repository.commit(new).sha == checkout.git("rev-parse", "HEAD").decode().strip()
    with pytest.raises(RepositoryError, match="no commit"):
        repository.commit(old)


def test_kept_commit_survives_the_end_of_its_branch(pulled: Mirror, checkout: Checkout) -> None:
    first = mirrors.fetch(pulled).commit("main").sha
    mirrors.keep(pulled, first)
    checkout.git("commit", "-q", "--amend", "-m", "Another")
    folder = mirrors.fetch(pulled).git_dir
    subprocess.run(["git", "gc", "--quiet", "--prune=now"], cwd=folder, check=True)
    assert mirrors.opened(pulled).commit(first).sha == first
    for ref in (f"refs/perfweb/kept/{first}", "refs/perfweb/x"):
        with pytest.raises(RepositoryError, match="service's own"):
            mirrors.fetch(pulled, ref)


def test_branch_that_git_refuses_does_not_block_the_others(pulled: Mirror, checkout: Checkout) -> None:
    wrong = b"tree %s\nauthor a <a@b> 0 +0000\n\nno committer\n" % checkout.git("rev-parse", "HEAD^{tree}").strip()
    made = subprocess.run(
        ["git", "hash-object", "--literally", "-t", "commit", "-w", "--stdin"], cwd=checkout.tree, input=wrong,
        check=True, capture_output=True,
    )  # fmt: skip
    checkout.git("update-ref", "refs/heads/broken", made.stdout.decode().strip())
    repository = mirrors.fetch(pulled, PULL)
    assert repository.commit(PULL).sha == checkout.git("rev-parse", PULL).decode().strip()
    with pytest.raises(RepositoryError, match="cannot be fetched"):
        mirrors.fetch(pulled, "refs/heads/broken")


def test_lock_that_a_killed_process_left_does_not_block_a_mirror(pulled: Mirror, checkout: Checkout) -> None:
    folder = mirrors.fetch(pulled).git_dir
    for name in ("packed-refs.lock", "shallow.lock", "refs/heads/main.lock"):
        (folder / name).touch()
    checkout.put("stack/more.c", "int more;\n")
    made = checkout.commit("More")
    assert mirrors.fetch(pulled).commit("main").sha == made
    (folder / "HEAD").unlink()  # its creation was interrupted
    assert mirrors.fetch(pulled).commit("main").sha == made


def test_fetch_waits_for_another_one_but_not_for_ever(pulled: Mirror) -> None:
    folder = mirrors.fetch(pulled).git_dir
    with (folder / "perfweb.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(mirrors.FetchError, match="by another process"):
            mirrors.fetch(pulled, seconds=0.2)


def test_slow_repository_does_not_use_up_the_time_of_others(pulled: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "RESTS", 600.0)
    with SilentServer() as server:
        slow = Mirror(name="slow", url=f"{server.url}/x.git")
        with pytest.raises(mirrors.FetchError, match=r"longer than 1 s: it is too large, or slow$"):
            mirrors.fetch(slow, seconds=1)
        assert server.clients_are_gone(), "no process of git waits on"
        for _ in range(3):
            with pytest.raises(mirrors.FetchError, match=r"slow; the next attempt is possible in \d+ s"):
                mirrors.fetch(slow, seconds=1)
        assert server.connections == 1
        record = mirrors.opened(slow).git_dir / "perfweb.slow"
        os.utime(record, (0, 0))
        with pytest.raises(mirrors.FetchError, match=r"slow$"):
            mirrors.fetch(slow, seconds=1)
        assert server.connections == 2
        os.utime(record, (0, 0))
    slow.url = pulled.url
    assert mirrors.fetch(slow).commit("main").sha
    assert not record.exists()


def test_time_of_another_fetch_is_not_that_of_this_one(pulled: Mirror) -> None:
    """A wait leaves half of the time, so that the error is never about a fetch that had none."""
    folder = mirrors.fetch(pulled).git_dir
    with (folder / "perfweb.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        timer = threading.Timer(0.5, lambda: fcntl.flock(file, fcntl.LOCK_UN))
        timer.start()
        assert mirrors.fetch(pulled, seconds=60).commit("main").sha
        timer.join()
