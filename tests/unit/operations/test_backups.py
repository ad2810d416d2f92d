# SPDX-License-Identifier: BSD-2-Clause
"""A back-up restored into an empty database has the same data, byte for byte."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from django.conf import settings as site
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from pytest_django import Settings

from perfweb.builds.sources import archive_path
from perfweb.operations.backups import DUMP, MANIFEST, BackupError, backup, restore
from perfweb.runs.models import Artefact, Run, RunState
from perfweb.runs.summaries import summarise
from tests.factories import create_build, create_queued_run, create_run, create_submission, create_variants
from tests.servers import served

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def run(settings: Settings, tmp_path: Path) -> Run:
    """A run with verdicts, and a queued one, whose sources are packed."""
    settings.PERFWEB_VAR = tmp_path / "var"
    done = create_run()
    summarise([done.pk])
    create_submission()
    waiting = create_queued_run()
    build = create_build("waiting")
    create_variants(waiting, build)
    packed = archive_path(tmp_path / "var" / "sources", build.source_sha256)
    packed.parent.mkdir(parents=True)
    packed.write_bytes(b"sources")
    return done


@pytest.fixture
def empty(transactional_db: None) -> Iterator[str]:
    """The name of an empty database.

    It is not dropped WITH (FORCE), because a user who is not the superuser may not end a worker of autovacuum; without
    it, the server ends that one itself, and waits for connections that are just closing.
    """
    name = f"{connection.settings_dict['NAME']}_restored"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name}")
    yield name
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name}")


def manage(database: str, var: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`manage.py` with another database."""
    environment = {
        **os.environ, "DJANGO_SETTINGS_MODULE": "perfweb.settings.development", "PERFWEB_PGDATABASE": database,
        "PERFWEB_PGHOST": str(connection.settings_dict["HOST"]), "PERFWEB_VAR": str(var),
    }  # fmt: skip
    command = [sys.executable, "manage.py", *words]
    return subprocess.run(command, cwd=site.BASE_DIR, env=environment, capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Done:
    """Return the output of a command, and its error if it failed."""

    stdout: str
    error: str = ""


def restored(database: str, var: Path, kept: Path) -> Done:
    """`manage.py restore` with another database, in this process: starting one takes longer than the restore."""
    printed = io.StringIO()
    connection.close()
    try:
        with override_settings(PERFWEB_VAR=var), patch.dict(connection.settings_dict, NAME=database):
            try:
                call_command("restore", str(kept), stdout=printed)
            finally:
                connection.close()
    except CommandError as error:
        return Done(printed.getvalue(), str(error))
    return Done(printed.getvalue())


def fetched(address: str, places: list[str]) -> dict[str, bytes]:
    answers = {}
    for place in places:
        with urllib.request.urlopen(f"{address}{place}") as answer:  # noqa: S310  # our own server
            answers[place] = answer.read()
    return answers


def test_all_pages_are_the_same_in_the_restored_database(run: Run, empty: str, tmp_path: Path) -> None:
    manifest = backup(tmp_path / "kept")
    assert (tmp_path / "kept").stat().st_mode & 0o77 == 0
    done = manage(empty, tmp_path, "restore", str(tmp_path / "kept"))
    assert done.returncode == 0, done.stderr
    assert f"{sum(manifest.rows.values())} rows" in done.stdout
    assert manage(empty, tmp_path, "migrate", "--check").returncode == 0
    [packed] = (tmp_path / "sources").iterdir()
    assert packed.read_bytes() == b"sources"
    comparison = f"/api/v1/comparisons?base={run.pk}/deferred&with={run.pk}/direct"
    places = ["/runs/", f"/runs/{run.pk}/", comparison, f"/runs/{run.pk}/samples.csv", "/submissions/"]
    places += [f"/artefacts/{key}/" for key in Artefact.objects.values_list("pk", flat=True)[:5]]
    with served(connection.settings_dict["NAME"]) as first, served(empty) as second:
        original, again = fetched(first, places), fetched(second, places)
    for place in places:
        assert original[place].replace(first.encode(), b"") == again[place].replace(second.encode(), b""), place
    assert b"faster" in original[comparison]


def test_the_manifest_lists_the_contents(run: Run, tmp_path: Path) -> None:
    manifest = backup(tmp_path / "kept")
    assert manifest.rows["runs_run"] == 2
    assert manifest.files.keys() == {DUMP, f"sources/{create_build('waiting').source_sha256}.tar.gz"}
    assert "runs.0001_initial" in manifest.migrations
    with pytest.raises(BackupError, match="is there already"):
        backup(tmp_path / "kept")


def test_a_database_with_tables_is_left_alone(run: Run, tmp_path: Path) -> None:
    backup(tmp_path / "kept")
    with pytest.raises(BackupError, match=r"holds \d+ tables.*restore into an empty one"):
        restore(tmp_path / "kept")
    assert Run.objects.get(pk=run.pk).state == RunState.DONE


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda kept: (kept / DUMP).write_bytes(b"x"), "is damaged"),
        (lambda kept: (kept / DUMP).unlink(), "is missing"),
        (lambda kept: (kept / MANIFEST).unlink(), "is no back-up"),
        (lambda kept: (kept / MANIFEST).write_text("[]"), "is no back-up"),
        (lambda kept: edit(kept, format=9), "has the format 9"),
        (lambda kept: edit(kept, migrations=["runs.9999_later"]), "made by a newer version, which has runs.9999_later"),
        (lambda kept: edit(kept, files={"../../etc/passwd": ""}), "is not in the back-up"),
        (lambda kept: edit(kept, server="PostgreSQL 99.1"), r"server is PostgreSQL \d+.*restore on PostgreSQL 99"),
        (lambda kept: edit(kept, server="?"), "names no version of PostgreSQL"),
    ],
)
def test_what_is_damaged_is_refused(run: Run, tmp_path: Path, spoil: object, problem: str) -> None:
    backup(tmp_path / "kept")
    spoil(tmp_path / "kept")  # type: ignore[operator]
    with pytest.raises(BackupError, match=problem):
        restore(tmp_path / "kept")


def edit(kept: Path, **fields: object) -> None:
    manifest = json.loads((kept / MANIFEST).read_text())
    (kept / MANIFEST).write_text(json.dumps(manifest | fields))


def test_a_restore_that_fails_leaves_the_database_empty(run: Run, empty: str, tmp_path: Path) -> None:
    backup(tmp_path / "kept")
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {empty} SET default_transaction_read_only = on")
    assert "CREATE EXTENSION pg_trgm" in restored(empty, tmp_path, tmp_path / "kept").error
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {empty} RESET default_transaction_read_only")
    assert restored(empty, tmp_path, tmp_path / "kept").error == ""


def tables(database: str) -> str:
    """The number of tables of a database."""
    server = connection.settings_dict
    query = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    command = ["psql", "-h", str(server["HOST"]), "-U", str(server["USER"]), "-d", database, "-Atc", query]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_dump_that_is_cut_off_leaves_the_database_empty(run: Run, empty: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    manifest = backup(kept)
    cut = (kept / DUMP).read_bytes()[:-2000]
    (kept / DUMP).write_bytes(cut)
    edit(kept, files=manifest.files | {DUMP: hashlib.sha256(cut).hexdigest()})
    assert f"cannot be restored into {empty}, which is unchanged" in restored(empty, tmp_path, kept).error
    assert tables(empty) == "0"


def test_other_numbers_of_rows_are_reported_with_what_to_do(run: Run, empty: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    manifest = backup(kept)
    edit(kept, rows=manifest.rows | {"runs_run": 7, "runs_none": 1})
    error = restored(empty, tmp_path, kept).error
    assert f"database {empty} is filled now, but runs_none, runs_run do not have as many rows" in error
    assert "drop it (dropdb)" in error


def test_a_restore_writes_nothing_into_the_back_up(run: Run, empty: str, tmp_path: Path) -> None:
    """A change in a directory, also one that was undone, changes the directory's time."""
    kept = tmp_path / "kept"
    backup(kept)
    before = {path: path.stat().st_mtime_ns for path in (kept, *kept.rglob("*"))}
    assert restored(empty, tmp_path, kept).error == ""
    assert {path: path.stat().st_mtime_ns for path in (kept, *kept.rglob("*"))} == before


def test_without_room_for_sources_the_database_is_as_it_was(run: Run, empty: str, tmp_path: Path) -> None:
    backup(tmp_path / "kept")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sources").write_text("a file is no directory")
    error = restored(empty, tmp_path / "other", tmp_path / "kept").error
    assert "packed sources cannot be written" in error
    assert "the database is as it was" in error
    assert tables(empty) == "0"


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_missing_database_is_reported_without_a_traceback(run: Run, tmp_path: Path, command: str) -> None:
    backup(tmp_path / "kept")
    target = tmp_path / ("new" if command == "backup" else "kept")
    done = manage("perfweb_nobody_made", tmp_path, command, str(target))
    assert done.returncode != 0
    assert "database perfweb_nobody_made cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "new").exists()
