# SPDX-License-Identifier: BSD-2-Clause
"""The installed command, against a server as in production."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from perfctl import Server, __version__
from perfctl.commands import run_command

from perfweb.runs import progress, states
from perfweb.runs.models import Run, RunState
from perfweb.runs.summaries import summarise
from tests.factories import DEMO_TESTS, create_history, create_queued_run, create_run

CLIENT = settings.BASE_DIR / "perfweb" / "client"
TEST = DEMO_TESTS[0]
Perfctl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def perfctl(asgi_server: str, tmp_path: Path) -> Perfctl:
    """Runs the command in an empty directory; its first argument is the expected exit status."""
    environment = {**os.environ, "PYTHONPATH": str(CLIENT), "PERFCTL_SERVER": asgi_server}

    def run(status: int, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "perfctl", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def test_runs_series_and_testbeds_are_reported(perfctl: Perfctl) -> None:
    runs = create_history(2)
    failed = create_run(failed_test=TEST)
    summarise([failed.pk])
    lines = perfctl(0, "runs").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["run", *(str(run.pk) for run in (failed, *reversed(runs)))]
    assert "direct: 1 faster" in lines[-1]
    assert len(json.loads(perfctl(0, "runs", "--json", "--test", DEMO_TESTS[1]).stdout)) == 1
    assert len(json.loads(perfctl(0, "runs", "--json", "--limit", 2).stdout)) == 2
    output = perfctl(0, "run", failed.pk).stdout
    assert "22 ok, 2 failed" in output or "2 failed, 22 ok" in output
    assert "net.isr.dispatch=direct" in output
    assert json.loads(perfctl(0, "run", failed.pk, "--json").stdout)["number"] == failed.pk
    series = perfctl(0, "series", TEST).stdout
    assert "v0.1-1-g0000001" in series
    assert "6.1.0-28-amd64 → 6.1.0-29-amd64" in series
    assert "was not measured" in perfctl(0, "series", "nothing").stdout
    assert json.loads(perfctl(0, "series", TEST, "--by", "run", "--json").stdout)["by"] == "run"
    assert "free" in perfctl(0, "testbeds").stdout


def test_the_exit_status_is_the_verdict(perfctl: Perfctl) -> None:
    faster, slower = create_run(tests=[TEST]), create_run(tests=[TEST], gain=0.9)
    unclear = create_run(tests=[TEST], gain=1.01, noise=0.2)
    text = perfctl(0, "compare", faster.pk).stdout
    assert f"{faster.pk}/direct against {faster.pk}/deferred, 95 % confidence: 1 faster" in text
    assert f"/runs/{faster.pk}/compare/deferred..direct/" in text
    assert "99 % confidence" in perfctl(1, "compare", slower.pk, "--confidence", 99).stdout
    perfctl(0, "compare", unclear.pk)
    perfctl(3, "compare", unclear.pk, "--decided")
    sides = f"{faster.pk}/direct", f"{slower.pk}/direct", f"{slower.pk}/deferred"
    (first, second) = json.loads(perfctl(1, "compare", *sides, "--json").stdout)
    assert (first["verdicts"]["slower"], second["other"]) == (1, sides[2])
    running = create_queued_run(state=RunState.RUNNING)
    assert "so far" in perfctl(0, "compare", running.pk).stderr


def test_downloads_are_checked(perfctl: Perfctl, asgi_server: str, tmp_path: Path) -> None:
    run = create_run(tests=[TEST])
    assert "agree with SHA256SUMS" in perfctl(0, "download", run.pk).stdout
    with tarfile.open(tmp_path / f"run-{run.pk}-raw.tar") as archive:
        samples = archive.extractfile(f"run-{run.pk}/samples.csv")
        assert samples is not None
        expected = samples.read()
    perfctl(0, "download", run.pk, "samples.csv", "-o", "here.csv", "--json")
    assert (tmp_path / "here.csv").read_bytes() == expected
    whole = (tmp_path / f"run-{run.pk}-raw.tar").read_bytes()
    with Server(asgi_server).open(f"/runs/{run.pk}/raw.tar") as answer:
        (tmp_path / "again.tar.part.etag").write_text(answer.headers["ETag"])
    (tmp_path / "again.tar.part").write_bytes(b"x" + whole[1:5000])
    resumed = perfctl(4, "download", run.pk, "-o", "again.tar").stderr
    assert "again.tar is damaged" in resumed, "only the rest is asked for, and what was there is checked"
    assert not list(tmp_path.glob("again*"))
    assert "it has samples.csv" in perfctl(2, "download", run.pk, "samples.xls").stderr
    assert "No such file" in perfctl(2, "download", run.pk, "-o", "nowhere/file").stderr


def test_a_run_is_followed_to_its_end(perfctl: Perfctl) -> None:
    run = create_run(tests=[TEST], gain=0.9)
    Run.objects.filter(pk=run.pk).update(state=RunState.RESTORING, ended=None)
    progress.begin(run.pk)
    progress.publish(run.pk, "eta", seconds=30, fraction=0.5)
    ending = threading.Timer(1.0, lambda: states.finish(run.pk))
    ending.start()
    watched = perfctl(1, "watch", run.pk)
    ending.join()
    assert watched.stdout.startswith("50 %, about 30 s left\ndone\n")
    assert "1 slower" in watched.stdout
    lines = [json.loads(line) for line in perfctl(1, "watch", run.pk, "--json").stdout.splitlines()]
    assert [line["event"] for line in lines] == ["eta", "state", "over", "comparisons"]
    failed = create_queued_run(state=RunState.RESTORING)
    states.fail(failed.pk, "the lab is on fire")
    assert "failed: the lab is on fire" in perfctl(5, "watch", failed.pk).stderr


def test_what_is_wrong_is_reported(asgi_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In this process, which is faster than a command for each mistake."""
    run = create_run(tests=[TEST])

    def complaint(status: int, *arguments: object) -> str:
        assert run_command(["--server", asgi_server, *map(str, arguments)]) == status
        return capsys.readouterr().err

    missing = f"perfctl: {asgi_server}: there is no run {run.pk + 1}; the newest is {run.pk}\n"
    for command in ("run", "compare", "download", "watch"):
        assert complaint(2, command, run.pk + 1) == missing
    assert "is no number of a run" in complaint(2, "compare", "direct")
    assert "its variants are: deferred, direct" in complaint(2, "compare", f"{run.pk}/a", f"{run.pk}/b")
    assert "choose one of 80" in complaint(2, "compare", run.pk, "--confidence", 42)
    assert "'queued'" in complaint(2, "runs", "--state", "finished")
    assert "write 2026-11-21" in complaint(2, "runs", "--since", "yesterday")
    assert "cannot read from http://127.0.0.1:9:" in complaint(4, "--server", "http://127.0.0.1:9", "runs")
    assert "is no address of a server" in complaint(2, "--server", "127.0.0.1", "runs")


def test_the_command_line_explains_itself(perfctl: Perfctl) -> None:
    explained = perfctl(0, "--help").stdout
    assert "exit status" in explained
    assert perfctl(0).stdout == explained
    assert perfctl(0, "--version").stdout == f"perfctl {__version__}\n"
    assert "invalid int value" in perfctl(2, "run", "x").stderr


def test_the_package_installs_without_anything_else(tmp_path: Path) -> None:
    """With the locked build backend and no package index; the command then needs neither this tree nor Django."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    where = ["--no-build-isolation", "--no-deps", "--target", str(tmp_path / "site"), str(CLIENT)]
    subprocess.run([*pip, *where], check=True, timeout=120, capture_output=True)
    command = tmp_path / "site" / "bin" / "perfctl"
    environment = {"PYTHONPATH": str(tmp_path / "site"), "PATH": os.environ["PATH"]}
    isolated = [sys.executable, "-S", str(command), "--help"]
    done = subprocess.run(isolated, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert "download" in done.stdout
    (metadata,) = tmp_path.glob("site/perfctl-*.dist-info/METADATA")
    assert f"\nVersion: {__version__}\n" in metadata.read_text(encoding="utf-8")
