# SPDX-License-Identifier: BSD-2-Clause
"""Naming builds by their content, and keeping what came of them."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from perfweb.builds.models import Build, BuildState

LONGEST_LOG = 256 * 1024


class SourceError(ValueError):
    """The sources cannot be packed; the message says why."""


@dataclass(frozen=True)
class Sources:
    """A packed source tree; `revision` is `git describe` of it, or empty outside a repository.

    `committed` is the time of that commit, None outside a repository.
    """

    archive: Path
    sha256: str
    revision: str
    committed: datetime | None = None


def pack_sources(tree: Path, store: Path) -> Sources:
    """Packs `tree` into `store`/SHA256.tar.gz.  The same files give the same bytes, so the hash names the content.

    Hidden files, build directories and Python caches are left out.  Raises SourceError.
    """
    if not (tree / "meson.build").is_file():
        raise SourceError(f"{tree} holds no meson.build: there is nothing to build the stack from")
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, compresslevel=6) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(_source_files(tree)):
            info = tarfile.TarInfo(f"{tree.name}/{path.relative_to(tree)}")
            content = path.read_bytes()
            info.size = len(content)
            info.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            archive.addfile(info, io.BytesIO(content))
    sha256 = hashlib.sha256(packed.getvalue()).hexdigest()
    target = archive_path(store, sha256)
    if not target.exists():
        store.mkdir(parents=True, exist_ok=True)
        unfinished = store / f"{sha256}.{os.getpid()}"
        unfinished.write_bytes(packed.getvalue())
        unfinished.replace(target)
    committed = _git(tree, "log", "-1", "--format=%cI")
    revision = _git(tree, "describe", "--always", "--dirty", "--tags")
    return Sources(target, sha256, revision[:80], datetime.fromisoformat(committed) if committed else None)


def archive_path(store: Path, sha256: str) -> Path:
    return store / f"{sha256}.tar.gz"


def _source_files(tree: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if not name.startswith((".", "build", "__pycache__"))]
        for name in files:
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _git(tree: Path, *words: str) -> str:
    """What git answers about a tree, empty outside a repository."""
    done = subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def build_key(source_sha256: str, options: Sequence[str]) -> str:
    """128 bits of the SHA-256 of sources and options; short enough for a directory name on a host."""
    content = json.dumps([source_sha256, list(options)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def named(sources: Sources, options: Sequence[str]) -> Build:
    """The build of `sources` with `options`, made before or not."""
    build, _ = Build.objects.get_or_create(
        key=build_key(sources.sha256, options),
        defaults={
            "source_sha256": sources.sha256,
            "revision": sources.revision,
            "committed": sources.committed,
            "options": list(options),
        },
    )
    return build


def foreign(revision: str, committed: datetime | None) -> Build:
    """The build of a revision that was made elsewhere, of which nothing else is known."""
    content = json.dumps(["foreign", revision, committed.isoformat() if committed else None])
    digest = hashlib.sha256(content.encode()).hexdigest()
    build, _ = Build.objects.get_or_create(
        key=digest[:32],
        defaults={
            "source_sha256": digest,
            "revision": revision,
            "committed": committed,
            "state": BuildState.FOREIGN,
        },
    )
    return build


def succeeded(build: Build, prefix: str, log: str, seconds: float | None) -> None:
    """Notes where the build is installed; log and time of a build that was there already are kept."""
    build.state = BuildState.READY
    build.prefix = prefix
    if seconds is not None:
        build.log, build.seconds = _storable(log), seconds
    build.save()


def failed(build: Build, log: str) -> None:
    build.state = BuildState.FAILED
    build.log = _storable(log)
    build.save()


def _storable(log: str) -> str:
    """The end of a log, without what PostgreSQL cannot store."""
    return log[-LONGEST_LOG:].encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
