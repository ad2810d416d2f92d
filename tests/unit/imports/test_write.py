# SPDX-License-Identifier: BSD-2-Clause
"""Imports as runs: all or none, once, marked, and on every page that shows runs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from perfweb.imports.records import ImportProblemsError, Options
from perfweb.imports.write import import_files
from perfweb.lab.origins import Origin
from perfweb.rawdata.replay.analysis import analyse, differences
from perfweb.rawdata.replay.bundle import read_bundle
from perfweb.runs import services
from perfweb.runs.models import Boot, Import, Measurement, MeasurementState, Plan, Run, Sample, Summary
from perfweb.runs.summaries import summarise
from perfweb.verdicts.text import run_text
from tests.factories import DEMO_TESTS, PLAN_TEXT, create_run, create_testbed
from tests.unit.imports.reading import DATA, TOOLS, file
from tests.unit.imports.test_formats import COLUMNS, CSV, RESULT
from tests.unit.pages import page, text_of
from tests.unit.rawdata.test_replay import save

pytestmark = pytest.mark.django_db
FREEBSD = DATA / "freebsd-head-2015-forwarding.csv"
TEST = "forward.udp/host-router-host/ipv4"
READ = {
    "columns": {"value": "pps", "variant": "test", "testbed": "host"}, "test": TEST, "unit": "packets/s",
    "boot_per_sample": True, "origin": "netbenches, Olivier Cochard-Labbé",
}  # fmt: skip


def imported(form: str, *paths: object, **options: object) -> Import:
    return import_files(form, list(map(str, paths)), Options(plan="given", **options), "tester")[0]  # type: ignore[arg-type]


def test_void_samples_are_kept_and_do_not_count(tmp_path: Path) -> None:
    call = "THROUGHPUT={rate}\nTHROUGHPUT_UNITS=Trans/s\nELAPSED_TIME=2\nMEAN_LATENCY=28.25\n"
    text = "".join(call.format(rate=rate) for rate in (30_000, 124, 31_000, 32_000))
    imported("netperf", file(tmp_path, text, "mixed.txt"), test=TEST)
    measurement = Measurement.objects.get()
    assert (measurement.state, measurement.voids) == (MeasurementState.OK, 1)
    assert Sample.objects.counted().filter(metric="transactions").count() == 3
    imported("netperf", file(tmp_path, call.format(rate=124) * 3, "stalled.txt"), test=TEST)
    assert Measurement.objects.latest("pk").state == MeasurementState.VOID


def test_a_year_of_freebsd_is_a_run_for_each_revision(client: Client) -> None:
    made = imported("csv", FREEBSD, **READ)
    assert made.sha256 == hashlib.sha256(FREEBSD.read_bytes()).hexdigest()
    runs = list(made.runs.order_by("pk"))
    assert len(runs) == 51
    assert Sample.objects.count() == 765
    first = Summary.objects.get(run=runs[0], variant__name="fastforwarding")
    assert (first.n, first.unit, first.revision) == (5, "packets/s", "r276669")
    assert first.mean == pytest.approx(727218.8)
    assert runs[0].testbed.name == "netgate-rcc-ve-4860-atom-c2558e-i350"
    assert "slower" in run_text(runs[0])

    seen = text_of(page(client, f"/runs/{runs[0].pk}/"))
    assert "imported: netbenches, Olivier Cochard-Labbé" in seen
    assert made.sha256 in seen
    assert json.loads(client.get(f"/runs/{runs[0].pk}/run.json").getvalue())["imported"]["sha256"] == made.sha256
    assert "imported" in text_of(page(client, "/runs/"))
    figure = json.loads(page(client, f"/tests/{TEST}/?graphs=json"))["timeline"]
    assert [len(trace["x"]) for trace in figure["data"]] == [51, 51, 51, 6, 6, 6]
    assert figure["data"][0]["x"] == [run.pk for run in runs]
    assert "r276669" in [text.partition(":")[0] for text in figure["data"][0]["text"]]
    assert TEST in text_of(page(client, "/tests/"))
    for address in ("/", "/testbeds/", f"/testbeds/{runs[0].testbed.name}/", f"/runs/{runs[0].pk}/matrix/"):
        page(client, address)
    sides = "base=r276669/fastforwarding&with=r293120/fastforwarding"
    assert "faster" in text_of(page(client, f"/compare/?{sides}"))


def test_the_same_files_are_imported_once_and_another_reading_again(tmp_path: Path) -> None:
    path = file(tmp_path, CSV)
    first, records = import_files("csv", [str(path)], Options(plan="p", columns=COLUMNS, test=TEST))
    assert len(records) == 3
    assert import_files("csv", [str(path)], Options(plan="p", columns=COLUMNS, test=TEST)) == (first, [])
    other, records = import_files(
        "csv", [str(path)], Options(plan="p", columns=COLUMNS, test=TEST, boot_per_sample=True)
    )
    assert (other != first, len(records)) == (True, 3)
    assert Run.objects.count() == 2


def test_nothing_of_a_bad_import_stays(tmp_path: Path) -> None:
    path = file(tmp_path, f"{CSV}new,2,-1\n")
    with pytest.raises(ImportProblemsError):
        imported("csv", path, columns=COLUMNS, test=TEST)
    assert not any(model.objects.exists() for model in (Import, Run, Plan, Sample))


def test_nothing_stays_when_the_database_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfweb.imports.write.copy_samples", lambda _: Run.objects.get(pk=-1))
    with pytest.raises(Run.DoesNotExist):
        imported("csv", file(tmp_path, CSV), columns=COLUMNS, test=TEST)
    assert not Import.objects.exists()


def test_boots_and_dates_of_commits(tmp_path: Path) -> None:
    rows = [f"{value},{boot},r{day},2015-01-{day:02d}" for day in (4, 2) for boot in (1, 2) for value in (10, 11, 12)]
    imported("csv", file(tmp_path, "value,boot,revision,date\n" + "\n".join(rows)), test=TEST, baseline="base")
    older, newer = Run.objects.order_by("pk")
    assert [older.summaries.get().revision, newer.summaries.get().revision] == ["r2", "r4"]
    assert older.summaries.get().at.isoformat() == "2015-01-02T00:00:00+00:00"
    assert Boot.objects.filter(run=older).count() == 2


def test_the_archive_of_imported_results_is_analysed_again(tmp_path: Path, client: Client) -> None:
    rows = [f"{value},{boot},{kernel}" for kernel in ("a", "b") for boot in (1, 2) for value in (10, 11, 12)]
    made = imported("csv", file(tmp_path, "value,boot,variant\n" + "\n".join(rows)), test=TEST, unit="packets/s")
    bundle = read_bundle(save(client, made.runs.get(), tmp_path))
    assert len(bundle.verdicts) == 1
    assert differences(bundle, analyse(bundle)) == []


def test_result_folders_and_outputs_of_tools(tmp_path: Path, client: Client) -> None:
    file(tmp_path, RESULT, "2026-11-02T10:00:00Z/2026-11-01T00:00:00Z/000/test.result")
    made = imported("test-result", tmp_path)
    seen = text_of(page(client, f"/runs/{made.runs.get().pk}/"))
    assert "FAIL Could not parse value" in seen
    assert "iperf3 -c10.3.45.35 -w1m -t10" in seen
    made = imported("netperf", f"lab={TOOLS / 'tcp.rr.txt'}", test=DEMO_TESTS[0])
    assert "latency.p99" in text_of(page(client, f"/runs/{made.runs.get().pk}/"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("value,variant\n1,A b\n1,a-b\n", "'A b' and 'a-b' would have the same name"),
        ("value,unit\n1,ms\n1,us\n", "is in 'us', and .* was in 'ms' before"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(ImportProblemsError, match=reason):
        imported("csv", file(tmp_path, content), test=TEST)


def test_a_test_that_is_here_in_another_unit(tmp_path: Path) -> None:
    summarise([create_run(tests=DEMO_TESTS[:1]).pk])
    with pytest.raises(ImportProblemsError, match="is here in transactions/s, higher is better"):
        imported("csv", file(tmp_path, "value\n1\n"), test=DEMO_TESTS[0], unit="ms")


def test_the_baseline_has_to_be_there(tmp_path: Path) -> None:
    path = file(tmp_path, CSV)
    with pytest.raises(ImportProblemsError, match="has no variant 'older' to be the baseline; there are: old, new"):
        imported("csv", path, columns=COLUMNS, test=TEST, baseline="older")
    made = imported("csv", path, columns=COLUMNS, test=TEST, baseline="new")
    assert made.runs.get().variants.get(baseline=True).name == "new"


def test_what_is_only_imported_cannot_be_measured(tmp_path: Path) -> None:
    imported("csv", file(tmp_path, CSV), columns=COLUMNS, test=TEST, testbed="faraway")
    with pytest.raises(services.RunError, match="has imported results only"):
        services.submit(PLAN_TEXT + f"tests: [{DEMO_TESTS[0]}]\n", "faraway")


def test_what_is_imported_was_not_simulated(tmp_path: Path) -> None:
    create_testbed("sim", origin=Origin.SIMULATED)
    with pytest.raises(ImportProblemsError, match="the testbed sim simulates: give another one with --testbed"):
        imported("csv", file(tmp_path, CSV), columns=COLUMNS, test=TEST, testbed="sim")
    with pytest.raises(ImportProblemsError, match="is a name of simulated results: give what was measured another"):
        imported("csv", file(tmp_path, CSV), columns=COLUMNS, test="simulated.tcp.2/host-host/ipv4")


def test_the_command_prints_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(file(tmp_path, CSV))
    given = ["--column", "value=pps", "--column", "variant=kernel", "--test", TEST]
    call_command("import", "csv", path, *given, "--check")
    assert "3 samples of 1 runs can be imported; SHA-256" in capsys.readouterr().out
    assert not Import.objects.exists()
    call_command("import", "csv", path, *given)
    assert "3 samples are run" in capsys.readouterr().out
    call_command("import", "csv", path, *given)
    assert "imported before, as run" in capsys.readouterr().out
    with pytest.raises(CommandError, match=r"nothing was imported:\n.*given\.txt, line 1: has no column 'x'"):
        call_command("import", "csv", path, "--column", "value=x", "--test", TEST)
    for wrong in (["--column", "pps"], ["--column", "a=b", "--column", "a=c"], ["--date", "x"], ["--plan", "??"]):
        with pytest.raises(CommandError):
            call_command("import", "csv", path, *wrong)
