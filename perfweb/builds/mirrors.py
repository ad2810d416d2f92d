# SPDX-License-Identifier: BSD-2-Clause
"""Mirrors of other git repositories, and their changes as patches.

git uses the protocol of the registered address only and follows no redirect, with limits of time and size. What it
fetches is checked, and nothing of it is executed.
"""

import ipaddress
import re
import subprocess
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
MOST_BYTES = 512 * 1024 * 1024
"""Max bytes of a single file that git writes, and of one fetch."""


class FetchError(RepositoryError):
    """Nothing could be fetched; a later attempt may succeed."""


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
    """Update the mirror: all branches and tags, and `refs`. Raises FetchError."""
    protocol, folder = check(mirror.url), _folder(mirror)
    for ref in refs:
        _check_ref(ref)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _git(["init", "--quiet", "--bare", "--template=", str(folder)], folder.parent)
    command = git_command(
        "protocol.allow=never", f"protocol.{protocol}.allow=always", "http.followRedirects=false",
        "fetch.fsckObjects=true", "gc.auto=0", "credential.helper=",
    )  # fmt: skip
    wanted = ("refs/heads/*", "refs/tags/*", *refs)
    _git(
        ["fetch", "--quiet", "--no-write-fetch-head", "--no-recurse-submodules", "--", mirror.url,
         *(f"+{ref}:{ref}" for ref in wanted)],
        folder, command, seconds,
    )  # fmt: skip
    return Repository.at(folder)


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


def _folder(mirror: Mirror) -> Path:
    if _MIRROR.fullmatch(mirror.name) is None:
        raise RepositoryError(f"“{shown(mirror.name, 100)}” is no name of a repository: use letters, digits, - and _")
    return Path(settings.PERFWEB_VAR) / "repositories" / f"{mirror.name}.git"


def _git(words: list[str], folder: Path, command: list[str] | None = None, seconds: float = SECONDS) -> None:
    try:
        done = subprocess.run(
            ["prlimit", f"--fsize={MOST_BYTES}", *(command or git_command()), *words], cwd=folder, check=False,
            capture_output=True, text=True, env=git_environment(folder), timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise FetchError(f"fetching takes longer than {seconds:g} s: it is too large, or slow") from None
    if done.returncode != 0:
        complaint = " ".join(done.stderr.split())[:300]
        raise FetchError(f"cannot be fetched: {complaint or f'git ended with {done.returncode}'}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
