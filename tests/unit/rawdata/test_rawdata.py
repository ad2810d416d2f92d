# SPDX-License-Identifier: BSD-2-Clause
"""Downloads have all data, and ministat run on them agrees with the comparison."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import AsyncClient, Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from perfweb.rawdata import selections
from perfweb.rawdata.documents import run_json
from perfweb.rawdata.judgements import VERDICT_COLUMNS
from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Artefact, Measurement, Run, Sample
from perfweb.stats.comparison import among, compare_boots
from perfweb.stats.samples import read_samples
from perfweb.verdicts.doubts import run_pairs
from tests.factories import DEMO_TESTS, START, create_artefact, create_history, create_run, make_void

pytestmark = pytest.mark.django_db


def download(client: Client, name: str, *arguments: object) -> bytes:
    response = client.get(reverse(f"reports:{name}", args=arguments))
    assert response.status_code == 200
    return response.getvalue()


def test_csv_has_every_sample(client: Client, run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(download(client, "run-samples", run.pk, "csv").decode())))
    assert len(rows) == Sample.objects.count()
    assert {row["discarded"] for row in rows} == {"true", "false"}
    counted = [
        float(row["value"])
        for row in rows
        if (row["variant"], row["test"], row["metric"]) == ("direct", "tcp.rr/host-host/ipv4", "transactions")
        and row["discarded"] == "false"
    ]
    own = download(client, "ministat-input", run.pk, "direct", "tcp.rr/host-host/ipv4").decode()
    assert counted == list(map(float, own.split()))


def test_json_has_the_whole_tree(client: Client, run: Run) -> None:
    document = json.loads(download(client, "run-json", run.pk))
    assert document["number"] == run.pk
    assert [variant["name"] for variant in document["variants"]] == ["deferred", "direct"]
    assert len(document["boots"]) == run.boots.count()
    measurements = [measurement for boot in document["boots"] for measurement in boot["measurements"]]
    assert sum(len(measurement["samples"]) for measurement in measurements) == Sample.objects.count()
    assert [measurement["reason"] for measurement in measurements if measurement["state"] == "failed"]
    assert len(document["artefacts"]) == run.artefacts.count()
    assert document["history"][-1]["to_state"] == "done"


def test_void_samples_are_in_all_raw_data_and_in_no_statistics(client: Client, run: Run, tmp_path: Path) -> None:
    measurement = Measurement.objects.filter(boot__run=run, boot__variant__name="direct", test=DEMO_TESTS[0])[0]
    measurement.gauges = [{"steal": 0.1}]
    make_void(measurement, 2, "steal: 10 %")
    table = tmp_path / "samples.csv"
    table.write_bytes(download(client, "run-samples", run.pk, "csv"))
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert {(row["void"], row["sample"]) for row in rows if row["void"]} == {("steal: 10 %", "2")}
    own = download(client, "ministat-input", run.pk, "direct", DEMO_TESTS[0]).decode().split()
    assert len(own) == 9
    (read,) = [metric for metric in read_samples(table) if metric.primary and metric.test == DEMO_TESTS[0]]
    assert sorted(value for boot in read.variants["direct"] for value in boot) == sorted(map(float, own))
    document = json.loads(download(client, "run-json", run.pk))
    (found,) = [one for boot in document["boots"] for one in boot["measurements"] if one["voids"]]
    assert found["gauges"] == [{"steal": 0.1}]
    assert {sample["void"] for sample in found["samples"]} == {"", "steal: 10 %"}


@pytest.mark.parametrize("boots", [1, 4])
def test_queries_of_the_json_do_not_depend_on_how_much_was_measured(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, boots: int
) -> None:
    run = create_run(boots=boots)
    with django_assert_num_queries(14):
        download(client, "run-json", run.pk)


def unpack(archive: bytes, directory: Path) -> Path:
    subprocess.run(["tar", "--extract"], input=archive, cwd=directory, check=True, timeout=60)
    (folder,) = directory.iterdir()
    return folder


def test_the_archive_holds_everything_and_its_sums_are_right(client: Client, run: Run, tmp_path: Path) -> None:
    archive = download(client, "run-archive", run.pk)
    assert archive == download(client, "run-archive", run.pk)
    folder = unpack(archive, tmp_path)
    assert folder.name == f"run-{run.pk}"
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=folder, check=True, timeout=60)
    for artefact in Artefact.objects.all():
        content = (folder / "artefacts" / artefact.name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == artefact.sha256
    assert (folder / "plan.yaml").read_text() == run.plan.text
    assert (folder / "samples.csv").read_bytes() == download(client, "run-samples", run.pk, "csv")


class MinistatTexts(HTMLParser):
    """Collects the <pre class="ministat"> elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre" and ("class", "ministat") in attrs:
            self.inside = True
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[-1] += data


@pytest.mark.parametrize("confidence", ["80", "95", "99.5"])
def test_the_page_agrees_with_ministat_on_the_downloaded_files(client: Client, tmp_path: Path, confidence: str) -> None:
    run = create_run()
    folder = unpack(download(client, "run-archive", run.pk), tmp_path) / "ministat"
    address = reverse("reports:comparison", args=[run.pk, "deferred", "direct"])
    page = MinistatTexts()
    page.feed(client.get(address, {"confidence": confidence}).content.decode())
    assert len(page.texts) == 6
    for text in page.texts:
        files = [line[2:] for line in text.splitlines()[:2]]
        command = ["ministat", "-c", confidence, *files]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
        assert text == done.stdout


def test_the_verdicts_of_the_page_come_out_of_the_downloaded_samples(client: Client, tmp_path: Path) -> None:
    """A gain between equivalent and faster; a position with two boots; all numbers to the last digit."""
    run = create_run(boots=4, samples=20, gain=1.012, noise=0.01, seed=3)
    run.boots.filter(position=2).update(attempt=2, position=1)
    table = tmp_path / "samples.csv"
    table.write_bytes(download(client, "run-samples", run.pk, "csv"))
    rates = [metric for metric in read_samples(table) if metric.direction == "higher"]
    ours = among(
        [compare_boots(metric.variants["deferred"], metric.variants["direct"], metric.direction) for metric in rates]
    )
    (pair,) = run_pairs(run, counted_samples([run])[run.pk])
    theirs = {comparison.test: comparison.result for comparison in pair.compared}
    assert {metric.test: result for metric, result in zip(rates, ours, strict=True)} == theirs


def test_an_artefact_is_inert(client: Client, run: Run) -> None:
    artefact = create_artefact(run, "evil.html", "<script>alert(1)</script>")
    response = client.get(reverse("reports:artefact", args=[artefact.pk]))
    assert response.getvalue() == b"<script>alert(1)</script>"
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response.headers["Content-Security-Policy"]


def test_bytes_that_are_no_text_come_back_unchanged(client: Client, run: Run) -> None:
    artefact = create_artefact(run, "odd.txt", "")
    Artefact.objects.filter(pk=artefact.pk).update(content=b"\xff\x00\xfe")
    assert download(client, "artefact", artefact.pk) == b"\xff\x00\xfe"


@pytest.mark.django_db(transaction=True)
async def test_downloads_stream_on_an_event_loop(async_client: AsyncClient) -> None:
    run = await sync_to_async(create_run)()
    response: Any = await async_client.get(f"/runs/{run.pk}/samples.csv")
    assert response.is_async
    lines = b"".join([piece async for piece in response]).splitlines()
    assert len(lines) == 1 + await Sample.objects.acount()
    await sync_to_async(connections.close_all)()  # that of the thread in which the queries ran


def rows_of(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode(), newline="")))


def test_samples_are_read_through_a_cursor_on_the_server(run: Run) -> None:
    rows = selections.samples_table(selections.of_run(run)).rows()
    next(rows)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_cursors WHERE statement LIKE %s", ["%runs_sample%"])
        assert cursor.fetchone() == (1,)
    assert sum(1 for _ in rows) == Sample.objects.count() - 1


def test_a_measurement_with_many_samples_is_written_while_they_are_read() -> None:
    run = create_run(tests=DEMO_TESTS[:1], boots=1)
    first = Measurement.objects.filter(boot__run=run).order_by("pk")[0]
    Sample.objects.bulk_create(
        Sample(measurement=first, index=index, metric="throughput", value=index, unit="bits/s", direction="higher",
               seconds=1.0)
        for index in range(100, 20_100)
    )  # fmt: skip
    pieces = list(run_json(run))
    assert max(map(len, pieces)) < 80_000
    document = json.loads(b"".join(pieces))
    found = [sample["index"] for sample in document["boots"][0]["measurements"][0]["samples"]]
    assert found[-20_000:] == list(range(100, 20_100))


def test_verdicts_are_those_of_the_page(client: Client, run: Run) -> None:
    (pair,) = run_pairs(run, counted_samples([run])[run.pk])
    table = rows_of(download(client, "run-verdicts", run.pk, "csv"))
    assert [row["test"] for row in table] == [comparison.test for comparison in pair.compared]
    for row, comparison in zip(table, pair.compared, strict=True):
        result = comparison.result
        assert row["verdict"] == str(result.verdict)
        assert float(row["base_mean"]) == (result.a.mean if result.a else None)
        assert (row["change"], row["change_low"], row["change_high"]) == (
            tuple(map(str, (found.percent, found.low, found.high)))
            if (found := result.effect and result.effect.interval)
            else ("", "", "")
        )
    same = download(client, "comparison-verdicts", run.pk, "deferred", "direct", "csv")
    assert rows_of(same) == table


def test_a_comparison_has_the_limits_of_its_address(client: Client, run: Run) -> None:
    address = reverse("reports:comparison-verdicts", args=[run.pk, "direct", "deferred", "json"])
    narrow = client.get(address, {"margin": "0.5", "confidence": "99"})
    table = json.loads(narrow.getvalue())
    assert {(row["base"], row["margin"], row["confidence"]) for row in table} == {("direct", 0.5, 99.0)}
    assert narrow["ETag"] != client.get(address)["ETag"]
    assert client.get(address, {"margin": "all"}).status_code == 400


def test_a_comparison_of_two_runs_has_the_samples_of_its_sides(client: Client, tmp_path: Path) -> None:
    runs = [create_run(tests=DEMO_TESTS[:1], seed=seed) for seed in (1, 2, 3)]
    wanted = {"base": f"{runs[0].pk}/deferred", "with": f"{runs[1].pk}/direct"}
    samples = client.get(reverse("reports:compare-samples", args=["csv"]), wanted)
    sides = {(row["run"], row["variant"]) for row in rows_of(samples.getvalue())}
    assert sides == {(str(runs[0].pk), "deferred"), (str(runs[1].pk), "direct")}
    folder = unpack(client.get(reverse("reports:compare-archive"), wanted).getvalue(), tmp_path)
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=folder, check=True, timeout=60)
    files = {str(path.relative_to(folder)) for path in folder.rglob("*.txt")}
    assert f"ministat/{runs[0].pk}/deferred/{DEMO_TESTS[0]}.txt" in files
    assert f"artefacts/run-{runs[1].pk}/boots/001-direct/tunables.txt" in files
    assert not any("run-" + str(runs[2].pk) in name for name in files)
    unknown = client.get(reverse("reports:compare-archive"), {"base": "1/x", "with": "0/y"})
    assert unknown.status_code == 400


def test_a_series_has_every_run_of_its_window(client: Client, tmp_path: Path) -> None:
    runs = create_history(4)
    test = DEMO_TESTS[0]
    whole = rows_of(download(client, "series-table", test, "csv"))
    assert [(row["run"], row["variant"]) for row in whole] == [
        (str(run.pk), name) for run in runs for name in ("deferred", "direct")
    ]
    assert datetime.fromisoformat(whole[0]["at"]) == START - timedelta(days=4)
    late = {"by": "run", "from": str(runs[2].pk), "series": "demo/direct-or-deferred/direct"}
    newest = client.get(reverse("reports:series-table", args=[test, "csv"]), {"newest": "3"})
    assert rows_of(newest.getvalue()) == whole[2:]
    part = rows_of(client.get(reverse("reports:series-table", args=[test, "csv"]), late).getvalue())
    assert part == [row for row in whole if row["variant"] == "direct" and int(row["run"]) >= runs[2].pk]
    samples = rows_of(client.get(reverse("reports:series-samples", args=[test, "csv"]), late).getvalue())
    assert {(row["run"], row["test"]) for row in samples} == {(str(run.pk), test) for run in runs[2:]}
    folder = unpack(client.get(reverse("reports:series-archive", args=[test]), late).getvalue(), tmp_path)
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=folder, check=True, timeout=60)
    for run in runs[2:]:
        text = (folder / f"ministat/run-{run.pk}/direct/{test}.txt").read_text()
        mean = next(float(row["mean"]) for row in part if row["run"] == str(run.pk))
        assert sum(map(float, text.split())) / len(text.split()) == pytest.approx(mean)
    assert client.get(reverse("reports:series-table", args=["no/such", "csv"])).status_code == 404
    assert client.get(reverse("reports:series-table", args=[test, "csv"]), {"from": "soon"}).status_code == 400


def test_untrusted_names_are_safe_paths(client: Client, run: Run, tmp_path: Path) -> None:
    """A revision and a test may have any name; in an archive they stay inside and distinct."""
    Measurement.objects.filter(test=DEMO_TESTS[0]).update(test="../../etc/passwd")
    Measurement.objects.filter(test=DEMO_TESTS[2]).update(test="-rf /etc/passwd")
    Measurement.objects.filter(test=DEMO_TESTS[3]).update(test="rf+/etc/passwd")
    Measurement.objects.filter(test=DEMO_TESTS[4]).update(test="rf_/etc/passwd")
    folder = unpack(download(client, "run-archive", run.pk), tmp_path)
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=folder, check=True, timeout=60)
    found = sorted(str(path.relative_to(folder / "ministat/direct")) for path in folder.rglob("direct/**/passwd*"))
    assert found == ["etc/passwd.txt", "rf+/etc/passwd.txt", "rf_/etc/passwd.txt", "rf_/etc/passwd.txt.2"]


def test_the_columns_are_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "data.md").read_text(encoding="utf-8")
    tables = (selections.SAMPLE_COLUMNS, selections.INTERIM_COLUMNS, selections.SERIES_COLUMNS, VERDICT_COLUMNS)
    for column in (column for table in tables for column in table):
        assert f"| `{column.name}` | {column.kind} | {column.meaning} |" in text, column.name
