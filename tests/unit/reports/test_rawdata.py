# SPDX-License-Identifier: BSD-2-Clause
"""Downloads carry everything, and ministat run on them says what the comparison says."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient, Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from perfweb.reports.verdicts import verdicts
from perfweb.runs.models import Artefact, Run, Sample
from perfweb.stats.comparison import among, compare_boots
from perfweb.stats.samples import read_samples
from tests.factories import create_artefact, create_run

pytestmark = pytest.mark.django_db


def download(client: Client, name: str, *arguments: object) -> bytes:
    response = client.get(reverse(f"reports:{name}", args=arguments))
    assert response.status_code == 200
    return response.getvalue()


def test_csv_has_every_sample(client: Client, run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(download(client, "samples-csv", run.pk).decode())))
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


@pytest.mark.parametrize("boots", [1, 4])
def test_queries_of_the_json_do_not_depend_on_how_much_was_measured(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, boots: int
) -> None:
    run = create_run(boots=boots)
    with django_assert_num_queries(8):
        download(client, "run-json", run.pk)


def unpack(archive: bytes, directory: Path) -> Path:
    subprocess.run(["tar", "--extract"], input=archive, cwd=directory, check=True, timeout=60)
    (folder,) = directory.iterdir()
    return folder


def test_the_archive_holds_everything_and_its_sums_are_right(client: Client, run: Run, tmp_path: Path) -> None:
    archive = download(client, "raw-tar", run.pk)
    assert archive == download(client, "raw-tar", run.pk)
    folder = unpack(archive, tmp_path)
    assert folder.name == f"run-{run.pk}"
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=folder, check=True, timeout=60)
    for artefact in Artefact.objects.all():
        content = (folder / "artefacts" / artefact.name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == artefact.sha256
    assert (folder / "plan.yaml").read_text() == run.plan.text
    assert (folder / "samples.csv").read_bytes() == download(client, "samples-csv", run.pk)


class MinistatTexts(HTMLParser):
    """Collects what stands in the <pre class="ministat"> elements of a page."""

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
    folder = unpack(download(client, "raw-tar", run.pk), tmp_path) / "ministat"
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
    """A gain between equivalent and faster; a place in the order with two boots; all numbers to the last digit."""
    run = create_run(boots=4, samples=20, gain=1.012, noise=0.01, seed=3)
    run.boots.filter(position=2).update(attempt=2, position=1)
    table = tmp_path / "samples.csv"
    table.write_bytes(download(client, "samples-csv", run.pk))
    rates = [metric for metric in read_samples(table) if metric.direction == "higher"]
    ours = among(
        [compare_boots(metric.variants["deferred"], metric.variants["direct"], metric.direction) for metric in rates]
    )
    ((_, (pair,)),) = verdicts([run])
    theirs = {comparison.test: comparison.result for comparison in pair.compared}
    assert {metric.test: result for metric, result in zip(rates, ours, strict=True)} == theirs


def test_an_artefact_is_inert(client: Client, run: Run) -> None:
    artefact = create_artefact(run, "evil.html", "<script>alert(1)</script>")
    response = client.get(reverse("reports:artefact", args=[artefact.pk]))
    assert response.content == b"<script>alert(1)</script>"
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
