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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from perfweb.builds.kinds import KINDS, STACK, Kind
from perfweb.builds.models import Mirror
from perfweb.builds.repositories import Repository, RepositoryError, check_name, git_command, git_environment
from perfweb.plaintext import shown

_MIRROR = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_URL = re.compile(r"[!-~]{1,500}", re.ASCII)
SECONDS = 120.0
PAGE_SECONDS = 20.0
"""Max time that a user waits on a page."""
MESSENGER_SECONDS = 45.0
"""Max time of a fetch by the messenger, so that a failed one is reported within a minute."""
RESTS = 3.0
"""A repository that was too slow is not tried again for so many times the time that it took. The messenger fetches one
repository after another, so that a slow one would delay the requests of all others.
"""
_TIMED_OUT = {124, -9, 137}
"""Statuses of timeout(1) after the time; those of a kill also if the machine has no memory left."""
_ENDS_WITH_US = ("setpriv", "--pdeathsig", "TERM")
_HASH = re.compile(r"[0-9a-f]{4,64}", re.ASCII)
OWN = "the service's own"
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
    return Repository.at(_folder(mirror) if mirror else settings.PATCH_REPOSITORY, kind_of(mirror))


def kind_of(mirror: Mirror | None) -> Kind:
    """Return what a repository holds; the service's own has the stack."""
    return KINDS[mirror.kind] if mirror else STACK


def beside(mirror: Mirror | None, target: str = "") -> list[str]:
    """Return the names of the other repositories; with a target, of those that have its sources."""
    kinds = [kind.name for kind in KINDS.values() if not target or target in kind.targets]
    others = Mirror.objects.filter(kind__in=kinds).exclude(name=mirror.name if mirror else "")
    own = [OWN] if mirror and STACK.name in kinds else []
    return [*own, *others.values_list("name", flat=True)]


def require_targets(mirror: Mirror | None, targets: Iterable[str]) -> None:
    """Raise RepositoryError if one of these targets of a plan is not built from the sources of a repository."""
    kind = kind_of(mirror)
    if wrong := sorted(set(targets) - set(kind.targets)):
        there = f"Repository {mirror}" if mirror else "The service's own repository"
        raise RepositoryError(
            f"{there} holds {kind.title}, and this plan builds target {wrong[0]}: choose the tests {kind.matrix}, or "
            f"another repository: {', '.join(beside(mirror, wrong[0])) or 'none is registered'}."
        )


def fetch(mirror: Mirror, *names: str, seconds: float = SECONDS) -> Repository:
    """Update the mirror: all branches and tags, and those of `names` that begin with refs/. Raises FetchError.

    `names` are the branches, tags, refs and hashes that the caller needs; the mirror's own branch by default. If the
    repository has a branch or tag that git refuses, only they are updated. None of them is ever left as it was.
    """
    check(mirror.url)
    names = names or (mirror.branch,)
    for name in names:
        _check_name(name)
    folder, deadline = _folder(mirror), time.monotonic() + seconds
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder, deadline - seconds / 2) as lock, _resting(folder):
        there = _Remote(mirror.url, folder, deadline, lock)
        if not (folder / "HEAD").exists():
            _git(["init", "--quiet", "--bare", "--template=", "."], folder, lock=lock)
        try:
            there.fetch(["refs/heads/*", "refs/tags/*", *(name for name in names if name.startswith("refs/"))])
        except FetchError as error:
            if time.monotonic() >= deadline:
                raise
            there.fetch(_needed(there, names, error))
            log.warning("%s: only %s is fetched: %s", mirror, ", ".join(names), error)
    return opened(mirror)


def keep(mirror: Mirror, sha: str) -> None:
    """Keep a commit in the mirror, also from git-gc(1), whatever becomes of its branch."""
    try:
        _git(["update-ref", f"{OWN_REFS}kept/{sha}", sha], _folder(mirror))
    except FetchError as error:
        log.warning("%s: commit %s has no reference: %s", mirror, sha, error)


@dataclass(frozen=True)
class _Remote:
    """The repository of a mirror in `folder`. Its methods raise FetchError."""

    url: str
    folder: Path
    deadline: float
    lock: int

    def fetch(self, refs: Sequence[str]) -> None:
        """Fetch refs, and remove those of the same names that are gone there: a branch `a` hinders a new one `a/b`."""
        specifications = [f"+{ref}:{ref}" for ref in dict.fromkeys(refs)]
        options = ["--quiet", "--prune", "--update-shallow", "--no-write-fetch-head", "--no-recurse-submodules"]
        self._git("fetch", *options, "--", self.url, *specifications)

    def existing(self, refs: Sequence[str]) -> list[str]:
        """Return those of `refs` that the repository has now."""
        lines = self._git("ls-remote", "--quiet", "--refs", "--", self.url, *refs).splitlines()
        found = {line.partition("\t")[2] for line in lines}
        return [ref for ref in refs if ref in found]

    def _git(self, *words: str) -> str:
        protocol = check(self.url)
        command = git_command(
            "protocol.allow=never", f"protocol.{protocol}.allow=always", "http.followRedirects=false",
            "fetch.fsckObjects=true", "gc.auto=0", "credential.helper=",
        )  # fmt: skip
        return _git(words, self.folder, command, max(self.deadline - time.monotonic(), 1.0), self.lock)


def _needed(there: _Remote, names: Sequence[str], error: FetchError) -> list[str]:
    """Return the refs that `names` mean there now. A hash may be of a commit that is here. Raises `error` if another
    name means none, because what is here may be old.
    """
    refs = []
    for name in names:
        meant = there.existing([name] if name.startswith("refs/") else [f"refs/tags/{name}", f"refs/heads/{name}"])
        if not meant and not _has(there.folder, name):
            raise error
        refs += meant
    return refs


def _has(folder: Path, name: str) -> bool:
    """Return whether a name is the hash of a commit that is here."""
    try:
        return _HASH.fullmatch(name) is not None and Repository.at(folder).commit(name).sha.startswith(name)
    except RepositoryError:
        return False


@contextmanager
def _alone(folder: Path, deadline: float) -> Iterator[int]:
    """Wait until no other process writes into a mirror; give the descriptor of its lock, which lasts until all
    processes that have the descriptor have ended. Lock files of git that are there then are left from processes
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
        yield file.fileno()


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
        until = time.time() + RESTS * min(time.time() - begun, SECONDS)
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


def _check_name(name: str) -> None:
    """Refuses what git-fetch(1) would read as more than one name, such as one with a colon, and our own refs."""
    check_name(name)
    if name.startswith(OWN_REFS):
        raise RepositoryError(f"“{shown(name, 100)}” is a ref of this service's own; name one of the repository")


def _folder(mirror: Mirror) -> Path:
    if _MIRROR.fullmatch(mirror.name) is None:
        raise RepositoryError(f"“{shown(mirror.name, 100)}” is no name of a repository: use letters, digits, - and _")
    return Path(settings.PERFWEB_VAR) / "repositories" / f"{mirror.name}.git"


def _git(
    words: Sequence[str], folder: Path, command: Sequence[str] = (), seconds: float = SECONDS, lock: int | None = None
) -> str:
    """Return the output of git, which ends with this process, and has the lock of its mirror. Raises FetchError."""
    # timeout(1) ends git's helpers, too, which would wait for a server for ever; it needs a signal that it can handle.
    limits = [*_ENDS_WITH_US, "timeout", "--kill-after=1", f"{seconds:.3f}", "prlimit", f"--fsize={MOST_BYTES}"]
    begun = time.monotonic()
    with subprocess.Popen(
        [*limits, *(command or git_command()), *words], cwd=folder, env=git_environment(folder),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        pass_fds=() if lock is None else (lock,),
    ) as process:  # fmt: skip
        try:
            output, complaint = process.communicate()
        except BaseException:
            process.terminate()
            raise
    if process.returncode in _TIMED_OUT and time.monotonic() - begun >= seconds:
        raise SlowError(f"fetching takes longer than {seconds:.0f} s: it is too large, or slow")
    if process.returncode != 0:
        complaint = " ".join(complaint.split())[:300]
        raise FetchError(f"cannot be fetched: {complaint or f'git ended with {process.returncode}'}")
    return output


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
