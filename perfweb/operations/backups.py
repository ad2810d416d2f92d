# SPDX-License-Identifier: BSD-2-Clause
"""Back-ups: a directory with a database dump, the sources of queued runs, and a manifest that verifies both.

All results, texts and decisions of users are in the database. docs/howto/backup.md lists what is not included, and why.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import DatabaseError, Error, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from perfweb.builds.services import source_store
from perfweb.builds.sources import archive_path
from perfweb.jsontext import read_json
from perfweb.measuring.space import is_full
from perfweb.runs.models import FINAL_STATES, Variant

FORMAT = 1
_BACKED_UP = re.compile(r"database\.dump|sources/[0-9a-f]{64}\.tar\.gz", re.ASCII)
DUMP, MANIFEST, SOURCES = "database.dump", "manifest.json", "sources"


class BackupError(Exception):
    """The back-up or restore failed; the message has the reason and what to do. No partial result is left."""


@dataclass(frozen=True)
class Manifest:
    """The contents of a back-up: the migrations of its database as "app.name", the rows of each table, and the SHA-256
    of each file by its path. `missing` are packed sources that could not be copied, each with the reason.
    """

    format: int
    made: str
    server: str
    migrations: list[str]
    rows: dict[str, int]
    files: dict[str, str]
    missing: list[str] = field(default_factory=list)


def backup(target: Path) -> Manifest:
    """Back up into a directory that does not exist yet. Raises BackupError.

    The service may continue meanwhile: rows are counted and dumped in one snapshot.
    """
    if target.exists():
        raise BackupError(f"{target} is there already: name a new directory")
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True, mode=0o700)
        with _plain_words():
            manifest = _written(unfinished)
        unfinished.rename(target)
    except OSError as error:
        raise BackupError(f"{target} cannot be written: {error}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return manifest


def restore(source: Path) -> Manifest:
    """Restore a back-up into the database of the settings, which must not have tables yet. Raises BackupError.

    The database is filled last, in one transaction, because packed sources without their runs do no harm. Nothing is
    written into the back-up.
    """
    manifest = read_manifest(source)
    _check_files(source, manifest)
    _check_migrations(manifest)
    with _plain_words():
        _check_server(manifest)
        _check_empty()
        _restore_sources(source, manifest)
        _pg_restore(source / DUMP)
        _check_rows(manifest)
    return manifest


def read_manifest(source: Path) -> Manifest:
    """Read the manifest of a back-up. Raises BackupError."""
    try:
        manifest: dict[str, Any] = read_json((source / MANIFEST).read_text(encoding="utf-8"))
        if manifest.get("format") != FORMAT:
            raise BackupError(f"{source} has the format {manifest.get('format')}; this version reads {FORMAT}")
        return Manifest(**manifest)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BackupError(f"{source} is no back-up: {MANIFEST}: {error}") from None


@contextmanager
def _plain_words() -> Iterator[None]:
    """Map errors of the database to BackupError."""
    try:
        yield
    except Error as error:
        raise BackupError(f"database {_name()} cannot be used: {' '.join(str(error).split())[:500]}") from None


def _written(folder: Path) -> Manifest:
    """Dump and copy into an empty directory, the manifest last."""
    with _snapshot() as snapshot:
        _pg_dump(folder / DUMP, snapshot)
        rows = {table: _count(table) for table in _tables()}
        migrations = _applied()
        waiting = _sources_of_waiting_runs()
    missing = _copy_sources(waiting, folder / SOURCES)
    files = {str(path.relative_to(folder)): _sha256(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    server = f"PostgreSQL {_server_version()}"
    made = timezone.now().isoformat(timespec="seconds")
    manifest = Manifest(FORMAT, made, server, migrations, rows, files, missing)
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
    return manifest


def _copy_sources(paths: Sequence[Path], folder: Path) -> list[str]:
    """Copy packed sources; return the failed ones with the reasons. Raises OSError without space in the back-up."""
    missing = []
    for path in paths:
        try:
            _copy(path, folder / path.name)
        except OSError as error:
            if is_full(error):
                raise
            missing.append(f"{path.name}: {error.strerror}")
    return missing


@contextmanager
def _snapshot() -> Iterator[str]:
    """A snapshot of the database that other connections can use: PostgreSQL, “Snapshot Synchronization”."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        yield str(cursor.fetchone()[0])


def _pg_dump(target: Path, snapshot: str) -> None:
    _run(
        ["pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", f"--file={target}"],
        f"database {_name()} cannot be dumped",
    )


def _pg_restore(dump: Path) -> None:
    """Extensions are created first and separately, because they may exist and belong to another user."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except DatabaseError as error:
        raise BackupError(f"have an administrator run CREATE EXTENSION pg_trgm in {_name()}: {error}") from None
    contents = _run(["pg_restore", "--list", str(dump)], f"{dump} cannot be read", connected=False)
    wanted = [line for line in contents.splitlines() if line and not line.startswith(";") and " EXTENSION " not in line]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="perfweb-restore-") as listed:
        listed.write("\n".join(wanted))
        listed.flush()
        _run(
            ["pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges",
             f"--use-list={listed.name}", f"--dbname={_name()}", str(dump)],
            f"{dump} cannot be restored into {_name()}, which is unchanged",
        )  # fmt: skip


def _run(command: Sequence[str], problem: str, *, connected: bool = True) -> str:
    """Return the output of a program of PostgreSQL. Raises BackupError."""
    database = connection.settings_dict
    environment = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD", "PGDATABASE": "NAME"}
    values = {name: str(database[key]) for name, key in environment.items() if database[key]} if connected else {}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | values)
    except FileNotFoundError:
        raise BackupError(f"{command[0]} is not installed: apt-get install postgresql-client-15") from None
    if done.returncode != 0:
        raise BackupError(f"{problem}: {' '.join(done.stderr.split())[:500]}")
    return done.stdout


def _tables() -> list[str]:
    return sorted(model._meta.db_table for model in apps.get_models(include_auto_created=True) if model._meta.managed)


def _count(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608 (a name of our models)
        return int(cursor.fetchone()[0])


def _applied() -> list[str]:
    return sorted(".".join(key) for key in MigrationLoader(connection).applied_migrations)


def _check_migrations(manifest: Manifest) -> None:
    known = {".".join(key) for key in MigrationLoader(None).disk_migrations or ()}
    if newer := sorted(set(manifest.migrations) - known):
        raise BackupError(
            f"it was made by a newer version, which has {newer[-1]}: restore with that one, or a later one"
        )


def _check_server(manifest: Manifest) -> None:
    """Refuse a dump of a newer server, because an older one may not understand it, or understand it differently."""
    version = re.match(r"PostgreSQL (\d+)", manifest.server)
    if version is None:
        raise BackupError(f"{MANIFEST} names no version of PostgreSQL but {manifest.server!r}")
    ours = _server_version()
    if int(ours.split(".")[0]) < int(version.group(1)):
        raise BackupError(
            f"it was made with {manifest.server} and this server is PostgreSQL {ours}: restore on "
            f"PostgreSQL {version.group(1)} or later"
        )


def _check_empty() -> None:
    with connection.cursor() as cursor:
        if tables := connection.introspection.table_names(cursor):
            raise BackupError(
                f"database {_name()} holds {len(tables)} tables, such as {tables[0]}: restore into an empty one "
                "(createdb), so that nothing is overwritten"
            )


def _check_rows(manifest: Manifest) -> None:
    there = set(connection.introspection.table_names())
    if differing := sorted(t for t, count in manifest.rows.items() if t not in there or _count(t) != count):
        raise BackupError(
            f"database {_name()} is filled now, but {', '.join(differing)} do not have as many rows as "
            "were backed up. Do not use it: drop it (dropdb), create it (createdb) and restore again; if that fails, "
            "use another back-up"
        )


def _restore_sources(source: Path, manifest: Manifest) -> None:
    try:
        for name in manifest.files:
            if name.startswith(f"{SOURCES}/"):
                _copy(source / name, source_store() / Path(name).name)
    except OSError as error:
        raise BackupError(
            f"packed sources cannot be written: {error}; the database is as it was: mend that and restore again"
        ) from None


def _check_files(source: Path, manifest: Manifest) -> None:
    """Check all files before anything is restored; the error names each that is damaged."""
    problems = []
    for name, sha256 in manifest.files.items():
        if _BACKED_UP.fullmatch(name) is None or not (source / name).resolve().is_relative_to(source.resolve()):
            raise BackupError(f"{MANIFEST} names {name}, which is not in the back-up")
        try:
            found = _sha256(source / name)
        except OSError as error:
            problems.append(f"{name} is missing: {error}")
        else:
            if found != sha256:
                problems.append(f"{name} is damaged: its SHA-256 is not that of the manifest")
    if problems:
        raise BackupError("; ".join(problems))
    if DUMP not in manifest.files:
        raise BackupError(f"{MANIFEST} names no {DUMP}")


def _sources_of_waiting_runs() -> list[Path]:
    """Return the packed sources of unfinished runs."""
    waiting = Variant.objects.exclude(run__state__in=FINAL_STATES).filter(build__isnull=False)
    digests = waiting.order_by().values_list("build__source_sha256", flat=True).distinct()
    return [path for path in (archive_path(source_store(), digest) for digest in digests) if path.exists()]


def _name() -> str:
    return str(connection.settings_dict["NAME"])


def _server_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return str(cursor.fetchone()[0])


def _copy(source: Path, target: Path) -> None:
    """Copy a packed source completely or not at all, because existing ones count as complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    try:
        shutil.copyfile(source, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
