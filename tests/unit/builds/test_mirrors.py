# SPDX-License-Identifier: BSD-2-Clause
"""Mirrors of repositories elsewhere, and changes there as a patch that applies."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

import pytest
from pytest_django import Settings

from perfweb.builds import mirrors
from perfweb.builds.kinds import LINUX
from perfweb.builds.models import Mirror
from perfweb.builds.patches import PatchError, read_series
from perfweb.builds.repositories import Repository, RepositoryError
from tests.checkouts import Checkout
from tests.silent import SilentServer
from tests.waiting import wait_for

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


def test_changes_of_a_repository_of_linux_are_those_of_all_files(pulled: Mirror) -> None:
    pulled.kind = LINUX.name
    repository = mirrors.fetch(pulled, PULL)
    series = read_series(mirrors.changes(repository, "main", PULL, each=True).patch)
    with repository.bench() as bench:
        stages = bench.apply(series, repository.commit(series.base))
    assert [[file.path for file in stage.files] for stage in stages] == [
        ["docs/x.md", "stack/net/if.c"],
        ["stack/net/if.c"],
    ]


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
    ["--upload-pack=touch x", "-x", "refs/heads/x:refs/heads/main", "+refs/x", "refs/*", "refs/../../x",
     "refs/x\n", "refs/x ", "^refs/x", "refs/\u0445", "refs/x@{1}", "refs/a..b"],
)  # fmt: skip
def test_a_ref_is_one_ref_and_no_option(pulled: Mirror, ref: str) -> None:
    with pytest.raises(RepositoryError, match="names no commit"):
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


def test_shallow_clone_is_fetched_and_follows_its_origin(pulled: Mirror, checkout: Checkout, tmp_path: Path) -> None:
    clone = tmp_path / "shallow"
    checkout.git("clone", "-q", "--depth", "1", f"file://{checkout.tree}", str(clone))
    shallow = Mirror(name="shallow", url=str(clone))
    assert mirrors.fetch(shallow).commit("main").sha == checkout.git("rev-parse", "main").decode().strip()
    checkout.put("stack/other.c", "int more;\n")
    newest = checkout.commit("meanwhile")
    checkout.git("-C", str(clone), "fetch", "-q", "--depth", "1", "origin", "+main:main", "--update-head-ok")
    assert mirrors.fetch(shallow).commit("main").sha == newest


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


@pytest.fixture
def broken(pulled: Mirror, checkout: Checkout) -> str:
    """A commit that git refuses, which a branch of the fetched mirror has there now; main and topic have moved on."""
    checkout.git("branch", "topic")
    checkout.git("tag", "release")
    mirrors.fetch(pulled, PULL)
    made = checkout.put_malformed_branch("broken")
    checkout.put("stack/new.c", "int new_one;\n")
    checkout.commit("The newest")
    checkout.git("branch", "-f", "topic")
    checkout.git("tag", "-f", "release")
    return made


@pytest.mark.parametrize(
    "names",
    [(), ("main",), ("topic",), ("release",), ("refs/heads/topic",), ("refs/tags/release",), ("topic", "main", PULL)],
)
def test_branch_that_git_refuses_does_not_block_the_others(
    pulled: Mirror, checkout: Checkout, broken: str, names: tuple[str, ...]
) -> None:
    repository = mirrors.fetch(pulled, *names)
    for name in names or ("main",):
        assert repository.commit(name).sha == checkout.git("rev-parse", name).decode().strip()
    with pytest.raises(RepositoryError, match="no commit"):
        repository.commit(broken)


@pytest.mark.parametrize("name", ["broken", "refs/heads/broken", "BROKEN_HASH", "gone", "HEAD", "heads/topic"])
def test_name_that_is_not_updated_is_reported(pulled: Mirror, checkout: Checkout, broken: str, name: str) -> None:
    """What the mirror has by that name may be old."""
    checkout.git("branch", "gone")
    checkout.git("branch", "-f", "broken", "main")
    mirrors.fetch(pulled)
    checkout.git("branch", "-D", "gone")
    checkout.git("update-ref", "refs/heads/broken", broken)
    with pytest.raises(mirrors.FetchError, match="cannot be fetched"):
        mirrors.fetch(pulled, "main", name.replace("BROKEN_HASH", broken))


def test_hash_of_the_mirror_is_never_old(pulled: Mirror, broken: str) -> None:
    known = mirrors.opened(pulled).commit("main").sha
    assert mirrors.fetch(pulled, "topic", known).commit(known[:12]).sha == known


def test_nothing_old_is_used_while_the_network_fails(pulled: Mirror) -> None:
    known = mirrors.fetch(pulled, PULL).commit("main").sha
    pulled.url += "-gone"
    for names in ((), ("main",), (PULL,), (known,)):
        with pytest.raises(mirrors.FetchError, match="cannot be fetched"):
            mirrors.fetch(pulled, *names)


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


def test_repository_rests_at_once_after_the_longest_fetch(pulled: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "SECONDS", 1.0)
    with SilentServer() as server:
        slow = Mirror(name="slow", url=f"{server.url}/x.git")
        for words in ("longer than 1 s", "the next attempt is possible in"):
            with pytest.raises(mirrors.FetchError, match=words):
                mirrors.fetch(slow, seconds=1)
        assert server.connections == 1


def test_git_that_is_killed_is_not_slow(pulled: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without memory kills git."""
    killed = tmp_path / "bin" / "git"
    killed.parent.mkdir()
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    mirrors.fetch(pulled)
    monkeypatch.setenv("PATH", f"{killed.parent}:{os.environ['PATH']}")
    for _ in range(2):
        with pytest.raises(mirrors.FetchError, match=r"cannot be fetched: git ended with (-9|137)"):
            mirrors.fetch(pulled)


FETCHING = """\
import os, sys
from pathlib import Path
os.environ["DJANGO_SETTINGS_MODULE"] = "perfweb.settings.test"
import django
from django.conf import settings
django.setup()
settings.PERFWEB_VAR = Path(sys.argv[1])
from perfweb.builds import mirrors
from perfweb.builds.models import Mirror
mirrors.fetch(Mirror(name="slow", url=sys.argv[2]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_git_ends_with_the_process_that_began_it(tmp_path: Path, number: signal.Signals) -> None:
    with SilentServer() as server:
        process = subprocess.Popen([sys.executable, "-c", FETCHING, tmp_path, f"{server.url}/x.git"])
        wait_for(lambda: server.connections > 0, "a connection")
        process.send_signal(number)
        assert process.wait(60) != 0
        assert server.clients_are_gone()
        with (tmp_path / "repositories" / "slow.git" / "perfweb.lock").open("w") as file:
            wait_for(lambda: is_free(file), "the lock")


def is_free(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def test_git_has_the_lock_of_its_mirror(pulled: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lasts as long as git, else git's own lock files would be deleted as those of a process that was killed."""
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\nreadlink /proc/$$/fd/* >"{tmp_path}/open"\nexec "{shutil.which("git")}" "$@"\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    folder = mirrors.fetch(pulled).git_dir
    assert f"{folder}/perfweb.lock" in (tmp_path / "open").read_text().split("\n")


def test_time_of_another_fetch_is_not_that_of_this_one(pulled: Mirror) -> None:
    """A wait leaves half of the time, so that the error is never about a fetch that had none."""
    folder = mirrors.fetch(pulled).git_dir
    with (folder / "perfweb.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        timer = threading.Timer(0.5, lambda: fcntl.flock(file, fcntl.LOCK_UN))
        timer.start()
        assert mirrors.fetch(pulled, seconds=60).commit("main").sha
        timer.join()
