# SPDX-License-Identifier: BSD-2-Clause
"""Source trees as archives that are named by their content."""

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

LONGEST_REVISION = 80


class SourceError(ValueError):
    """The sources cannot be packed; the message has the reason."""


@dataclass(frozen=True)
class SourceFile:
    """A file below the root of a source tree."""

    path: PurePosixPath
    content: bytes
    executable: bool


@dataclass(frozen=True)
class Sources:
    """A packed source tree; `revision` is its `git describe`, or empty outside a repository.

    `committed` is the time of that commit, None outside a repository.
    """

    archive: Path
    sha256: str
    revision: str
    committed: datetime | None = None


def pack_sources(tree: Path, store: Path) -> Sources:
    """Packs the files of a directory into `store`, as `pack` does.  Raises SourceError."""
    committed = _git(tree, "log", "-1", "--format=%cI")
    revision = _git(tree, "describe", "--always", "--dirty", "--tags")
    when = datetime.fromisoformat(committed) if committed else None
    return pack(tree.name, _files_of(tree), store, revision, when)


def pack(
    name: str, files: Iterable[SourceFile], store: Path, revision: str = "", committed: datetime | None = None
) -> Sources:
    """Packs `files` into `store`/SHA256.tar.gz, below a directory `name`.

    The same files give the same bytes, so the hash names the content.  Hidden files, build directories and Python
    caches are left out.  Raises SourceError.
    """
    wanted = sorted((file for file in files if _is_source(file.path)), key=lambda file: file.path)
    if not any(file.path == PurePosixPath("meson.build") for file in wanted):
        raise SourceError(f"{name} holds no meson.build: there is nothing to build the stack from")
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, compresslevel=6) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in wanted:
            info = tarfile.TarInfo(f"{name}/{file.path}")
            info.size = len(file.content)
            info.mode = 0o755 if file.executable else 0o644
            archive.addfile(info, io.BytesIO(file.content))
    sha256 = hashlib.sha256(packed.getvalue()).hexdigest()
    target = archive_path(store, sha256)
    if not target.exists():
        with whole(target) as unfinished:
            unfinished.write_bytes(packed.getvalue())
    return Sources(target, sha256, revision[:LONGEST_REVISION], committed)


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Give a path for a file that becomes `target` when all of it is written, also if several requests write it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent.absolute()) as folder:
        unfinished = Path(folder) / target.name
        yield unfinished
        unfinished.replace(target)


def archive_path(store: Path, sha256: str) -> Path:
    return store / f"{sha256}.tar.gz"


def _is_source(path: PurePosixPath) -> bool:
    folders = path.parts[:-1]
    return not path.name.startswith(".") and not any(map(_is_skipped, folders))


def _is_skipped(folder: str) -> bool:
    return folder.startswith((".", "build", "__pycache__"))


def _files_of(tree: Path) -> Iterator[SourceFile]:
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if not _is_skipped(name)]
        for name in files:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                relative = PurePosixPath(path.relative_to(tree).as_posix())
                yield SourceFile(relative, path.read_bytes(), os.access(path, os.X_OK))


def _git(tree: Path, *words: str) -> str:
    """Return the output of git about a tree, empty outside a repository."""
    done = subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
