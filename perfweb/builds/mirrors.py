# SPDX-License-Identifier: BSD-2-Clause
"""Mirrors of other git repositories, and their changes as patches.

A mirror has the present branches and tags of its repository. Commits that runs need stay, under references of the
service's own, when the branch that had them is rewritten or deleted there.

git uses the protocol of the registered address only and follows no redirect, with limits of time and size. What it
fetches is checked, and nothing of it is executed.
"""

import fcntl
import ipaddress
import logging
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from perfweb.builds.models import Mirror
from perfweb.builds.repositories import Repository, RepositoryError, check_name, git_command, git_environment
from perfweb.plaintext import shown

_MIRROR = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_URL = re.compile(r"[!-~]{1,500}", re.ASCII)
SECONDS = 120.0
RESTS = 3.0
"""A repository that was too slow is not tried again for so many times the time that it took. The messenger fetches one
repository after another, so that a slow one would delay the requests of all others.
"""
_TIMED_OUT = {124, -9, 137}
"""Statuses of timeout(1) after the time, or after a kill."""
OWN_REFS = "refs/perfweb/"
MOST_BYTES = 512 * 1024 * 1024
"""Max bytes of a single file that git writes, and of one fetch."""

log = logging.getLogger(__name__)


class FetchError(RepositoryError):
    """Nothing could be fetched; a later attempt may succeed."""


class SlowError(FetchError):
    """The time was too short."""


@dataclass(frozen=True)
class Changes:
    """The changes of a fetched commit since it left a branch: the patch, the merge base, and the commit."""

    patch: bytes
    base: str
    head: str


def check(url: str) -> str:
    """Return the protocol of an address that may be fetched from. Raises RepositoryError."""
    if _URL.fullmatch(url) is None:
        raise RepositoryError("the address of a repository has characters that need to be escaped: write them as %20")
    if url.startswith("/"):
        return "file"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise RepositoryError(f"“{shown(url, 200)}” is no address: {error}") from None
    if parts.username or parts.password:
        raise RepositoryError("the address of a repository has a name or password; addresses are public, so remove it")
    if parts.scheme == "https" and parts.hostname:
        return "https"
    if parts.scheme == "http" and parts.hostname and _is_loopback(parts.hostname):
        return "http"
    raise RepositoryError(f"“{shown(url, 200)}” cannot be fetched: give an address with https://, or an absolute path")


def find(name: str) -> Mirror | None:
    """Return the registered repository of that name; None, the service's own, for an empty name. Raises
    RepositoryError.
    """
    mirror = Mirror.objects.filter(name=name).first() if name else None
    if name and mirror is None:
        known = ", ".join(Mirror.objects.values_list("name", flat=True)) or "none, see manage.py register_repository"
        raise RepositoryError(f"There is no repository “{shown(name, 64)}”; registered: {known}.")
    return mirror


def opened(mirror: Mirror | None) -> Repository:
    """Return the mirror as it is, or the service's own repository. Raises RepositoryError before the first fetch."""
    return Repository.at(_folder(mirror) if mirror else settings.PATCH_REPOSITORY)


def fetch(mirror: Mirror, *refs: str, seconds: float = SECONDS) -> Repository:
    """Update the mirror: all branches and tags, and `refs`. Raises FetchError.

    If the repository has a branch or tag that git refuses, only the mirror's own branch and `refs` are updated.
    """
    check(mirror.url)
    for ref in refs:
        _check_ref(ref)
    folder, begun = _folder(mirror), time.monotonic()
    deadline = begun + seconds
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder, begun + seconds / 2), _resting(folder):
        if not (folder / "HEAD").exists():
            _git(["init", "--quiet", "--bare", "--template=", "."], folder)
        try:
            _fetch(mirror.url, folder, ("refs/heads/*", "refs/tags/*", *refs), deadline)
        except FetchError as error:
            if time.monotonic() >= deadline:
                raise
            _fetch(mirror.url, folder, (f"refs/heads/{mirror.branch}", *refs), deadline)
            log.warning("%s: only %s is fetched: %s", mirror, ", ".join((mirror.branch, *refs)), error)
    return Repository.at(folder)


def keep(mirror: Mirror, sha: str) -> None:
    """Keep a commit in the mirror, also from git-gc(1), whatever becomes of its branch."""
    try:
        _git(["update-ref", f"{OWN_REFS}kept/{sha}", sha], _folder(mirror))
    except FetchError as error:
        log.warning("%s: commit %s has no reference: %s", mirror, sha, error)


def _fetch(url: str, folder: Path, wanted: Sequence[str], deadline: float) -> None:
    """Fetch refs, and remove those of the same names that are gone there: a branch `a` hinders a new one `a/b`."""
    protocol = check(url)
    command = git_command(
        "protocol.allow=never", f"protocol.{protocol}.allow=always", "http.followRedirects=false",
        "fetch.fsckObjects=true", "gc.auto=0", "credential.helper=",
    )  # fmt: skip
    _git(
        ["fetch", "--quiet", "--prune", "--no-write-fetch-head", "--no-recurse-submodules", "--", url,
         *(f"+{ref}:{ref}" for ref in dict.fromkeys(wanted))],
        folder, command, max(deadline - time.monotonic(), 1.0),
    )  # fmt: skip


@contextmanager
def _alone(folder: Path, deadline: float) -> Iterator[None]:
    """Wait until no other process writes into a mirror. Lock files of git that are there then are left from processes
    that were killed, and would block the mirror for ever. Raises FetchError after the deadline.
    """
    with (folder / "perfweb.lock").open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= deadline:
                    raise FetchError("the repository is being fetched by another process: try again") from None
                time.sleep(0.1)
        for left in folder.rglob("*.lock"):
            if left.name != "perfweb.lock" and OWN_REFS not in str(left):  # fetches write no references of our own
                left.unlink(missing_ok=True)
        yield


@contextmanager
def _resting(folder: Path) -> Iterator[None]:
    """Record that a repository is too slow, and refuse to try it again soon. Raises FetchError."""
    record, begun = folder / "perfweb.slow", time.time()
    if record.exists():
        left = record.stat().st_mtime - begun
        if 0 < left <= RESTS * SECONDS:  # else the clock was changed
            raise FetchError(f"{record.read_text(encoding='utf-8')}; the next attempt is possible in {left:.0f} s")
        record.unlink()
    try:
        yield
    except SlowError as error:
        record.write_text(str(error), encoding="utf-8")
        until = time.time() + RESTS * (time.time() - begun)
        os.utime(record, (until, until))
        raise


def changes(repository: Repository, branch: str, ref: str, *, each: bool = False) -> Changes:
    """Return the changes of a fetched ref that the branch does not have. Raises RepositoryError or PatchError."""
    onto, head = repository.commit(branch), repository.commit(ref)
    with repository.bench() as bench:
        base = bench.output("merge-base", onto.sha, head.sha).strip()
        if not base:
            raise RepositoryError(f"these changes have no commit in common with {branch}")
        patch = bench.patch(base, head.sha, each=each)
    # A bare diff has neither its base nor its subject; mails of format-patch have both.
    known = b"" if each else f"{ref} at {head.sha}\nbase-commit: {base}\n\n".encode()
    return Changes(known + patch, base, head.sha)


def _check_ref(ref: str) -> None:
    """Refuses what git-fetch(1) would read as more than one ref, such as one with a colon."""
    check_name(ref)
    if not ref.startswith("refs/"):
        raise RepositoryError(f"“{shown(ref, 100)}” is no ref: it begins with refs/")
    if ref.startswith(OWN_REFS):
        raise RepositoryError(f"“{shown(ref, 100)}” is a ref of this service's own; name one of the repository")


def _folder(mirror: Mirror) -> Path:
    if _MIRROR.fullmatch(mirror.name) is None:
        raise RepositoryError(f"“{shown(mirror.name, 100)}” is no name of a repository: use letters, digits, - and _")
    return Path(settings.PERFWEB_VAR) / "repositories" / f"{mirror.name}.git"


def _git(words: list[str], folder: Path, command: list[str] | None = None, seconds: float = SECONDS) -> None:
    # timeout(1) ends git's helpers, too, which would wait for a server for ever.
    limits = ["timeout", "--kill-after=1", f"{seconds:.3f}", "prlimit", f"--fsize={MOST_BYTES}"]
    done = subprocess.run(
        [*limits, *(command or git_command()), *words], cwd=folder, check=False,
        capture_output=True, text=True, env=git_environment(folder),
    )  # fmt: skip
    if done.returncode in _TIMED_OUT:
        raise SlowError(f"fetching takes longer than {seconds:.0f} s: it is too large, or slow")
    if done.returncode != 0:
        complaint = " ".join(done.stderr.split())[:300]
        raise FetchError(f"cannot be fetched: {complaint or f'git ended with {done.returncode}'}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
