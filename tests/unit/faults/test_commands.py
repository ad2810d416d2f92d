# SPDX-License-Identifier: BSD-2-Clause
"""Commands and hourly tasks over many items: a failing one is named at the end, and the others are done."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from perfweb.builds.sources import archive_path
from perfweb.faults.models import Fault
from perfweb.imports import write
from perfweb.measuring import spool
from perfweb.operations import contradictions, tasks, thinning
from perfweb.operations.backups import DUMP, BackupError, backup, restore
from perfweb.runs import calibration, states
from perfweb.runs.invariants import violations
from perfweb.runs.management.commands import summarise as command
from perfweb.runs.models import Artefact, ArtefactKind, Import, Run, Summary
from perfweb.runs.summaries import summarise
from tests.factories import create_build, create_queued_run, create_run, create_variants

TABLE = "variant,boot,value\nold,1,10\nold,1,11\nnew,1,20\nnew,1,21\n"
READ = ("--test", "tcp.rr/host-host/ipv4")


def raising(true: Callable[..., Any], concerns: Callable[..., bool]) -> Callable[..., Any]:
    def function(*arguments: Any, **named: Any) -> Any:
        if concerns(*arguments):
            raise RecursionError("planted")
        return true(*arguments, **named)

    return function


@pytest.mark.django_db
def test_summarise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bad, *others = [create_run(seed=seed) for seed in (1, 2, 3)]
    with monkeypatch.context() as broken:
        broken.setattr(command, "summarise", raising(summarise, lambda numbers: bad.number in numbers))
        with pytest.raises(CommandError, match=f"^1 failed: {bad}; manage.py faults shows why$"):
            call_command("summarise")
    assert {*Summary.objects.values_list("run", flat=True)} == {run.number for run in others}
    assert capsys.readouterr().out == "2 runs summarised\n"
    assert Fault.objects.get().item == str(bad)
    with pytest.raises(CommandError, match="there are no runs 4711"):
        call_command("summarise", str(bad.number), "4711")
    assert not Fault.objects.exists()
    assert bad.summaries.exists()


@pytest.mark.django_db(transaction=True)
def test_run_whose_calibration_fails_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "calibrate", raising(calibration.calibrate, lambda _: True))
    run = create_queued_run()
    states.cancel(run.number, "not wanted")
    assert Fault.objects.get(task="calibrate").item == str(run)


@pytest.mark.django_db
def test_import_whose_summaries_fail_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "given.csv"
    table.write_text(TABLE)
    monkeypatch.setattr(write, "summarise", raising(summarise, lambda _: True))
    with pytest.raises(CommandError, match=r"no summaries of run \d+: manage.py faults shows why"):
        call_command("import", "csv", str(table), *READ)
    assert Import.objects.count() == Run.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("form", ["csv", "iperf3", "ministat", "netperf", "test-result"])
def test_import_names_each_file_that_its_parser_fails_at(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [tmp_path / name / "2026-11-21T00:00:00Z" / "test.result" for name in ("a", "b")]
    for path in given:
        path.parent.mkdir(parents=True)
        path.write_text("x\n")
    inner = {"csv": "_table", "iperf3": "_documents", "test-result": "_tests"}.get(form, "_file")

    def broken(*_: object) -> Iterator[object]:
        yield from ()
        raise RecursionError("planted")

    monkeypatch.setattr(write.FORMATS[form].__module__ + f".{inner}", broken)
    paths = [str(path.parent) if form == "test-result" else f"{path.parts[-3]}={path}" for path in given]
    if form == "csv":
        paths = [str(path) for path in given]
    with pytest.raises(CommandError) as refused:
        call_command("import", form, *paths, *READ)
    for path in given:
        assert f"{path}: cannot be parsed: RecursionError: planted" in str(refused.value)


@pytest.fixture
def waiting(settings: Settings, tmp_path: Path) -> list[Path]:
    """The packed sources of two queued runs."""
    settings.PERFWEB_VAR = tmp_path / "var"
    packed = []
    for name in ("first", "second"):
        build = create_build(name)
        create_variants(create_queued_run(), build)
        path = archive_path(tmp_path / "var" / "sources", build.source_sha256)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        packed.append(path)
    return packed


@pytest.mark.django_db(transaction=True)
def test_backup_without_one_of_the_sources(waiting: list[Path], tmp_path: Path) -> None:
    bad, good = waiting
    bad.unlink()
    bad.mkdir()
    with pytest.raises(CommandError, match=f"1 packed sources are not in the back-up.*{bad.name}: Is a directory"):
        call_command("backup", str(tmp_path / "kept"))
    assert (tmp_path / "kept" / DUMP).stat().st_size > 0
    assert (tmp_path / "kept" / "sources" / good.name).read_bytes() == b"second"
    assert not (tmp_path / "kept" / "sources" / bad.name).exists()


@pytest.mark.django_db(transaction=True)
def test_restore_names_every_damaged_file(waiting: list[Path], tmp_path: Path) -> None:
    backup(tmp_path / "kept")
    for path in waiting:
        (tmp_path / "kept" / "sources" / path.name).write_bytes(b"damaged")
    with pytest.raises(BackupError) as refused:
        restore(tmp_path / "kept")
    assert all(f"sources/{path.name} is damaged" in str(refused.value) for path in waiting)


@pytest.mark.django_db
def test_thinning(monkeypatch: pytest.MonkeyPatch) -> None:
    run = create_run()
    ended = timezone.now() - timedelta(days=10)
    Run.objects.update(started=ended, ended=ended)
    content = b"x" * 5000
    digest = hashlib.sha256(content).hexdigest()
    Artefact.objects.filter(kind=ArtefactKind.TOOL_OUTPUT).update(content=content, size=5000, sha256=digest)
    bad, *others = Artefact.objects.filter(run=run, size=5000).order_by("pk")
    monkeypatch.setattr(thinning, "_put_note", raising(thinning._put_note, lambda row, _: row == bad))
    with pytest.raises(CommandError, match=f"^1 failed: text {bad.pk}; manage.py faults shows why$"):
        call_command("thin", "9")
    assert [row.pk for row in Artefact.objects.filter(size=5000)] == [bad.pk]
    assert others


@pytest.mark.django_db
def test_invariants(monkeypatch: pytest.MonkeyPatch) -> None:

    def broken(checks: list[Any]) -> list[str]:
        if checks[0].__name__ == "_runs_without_their_lease":
            raise RecursionError("planted")
        return violations(checks) or [f"said by {checks[0].__name__}"]

    monkeypatch.setattr(contradictions, "violations", broken)
    tasks.check_invariants()
    assert contradictions.count() == 3
    assert Fault.objects.get(task="check an invariant").item == "_runs_without_their_lease"


@pytest.mark.django_db
def test_spool_retry_beside_a_directory_of_no_run(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.PERFWEB_VAR = tmp_path
    run = create_queued_run()
    spool.begin(run, 1, []).rename(tmp_path / "spool" / "1.journal.unread")
    (tmp_path / "spool" / "1.journal.unread").unlink()
    for place in ("lost+found", str(next((tmp_path / "spool").iterdir()).name)):
        (tmp_path / "spool" / place).mkdir(exist_ok=True)
        (tmp_path / "spool" / place / "1.journal.unread").write_text("{}\n")
    call_command("spool", "retry")
    assert capsys.readouterr().out == "2 results are stored\n"
    assert [path.parent.name for path in (tmp_path / "spool").glob("*/*")] == ["lost+found"]
