# SPDX-License-Identifier: BSD-2-Clause
"""The page of published experiments, and the results that the documentation has of them."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from perfweb.manual.documents import documents
from perfweb.reports.published import experiments
from perfweb.reports.recorded import TABLES, recorded
from perfweb.runs.models import Run, RunState
from perfweb.verdicts.numbers import TIMES
from tests.factories import create_plan, create_run
from tests.unit.pages import page, text_of

PAGE = "/reproductions/"
CONNECT = "tcpconnect/host-host/ipv4"
SIMULATED = "simulated.tcp.1/host-host/ipv4"


def _run_of(plan: str, test: str, **changes: object) -> Run:
    run = create_run(tests=[test], gain=1.1224, boots=5)
    run.plan = create_plan(f"name: {plan}", name=plan)
    for name, value in changes.items():
        setattr(run, name, value)
    run.save()
    return run


def _part(client: Client, year: int) -> str:
    text = html.unescape(text_of(page(client, PAGE)))
    return re.split(r"\b20\d\d: ", text.partition(f" {year}: ")[2])[0]


@pytest.mark.django_db
def test_without_a_run_each_experiment_has_the_command_that_measures_it(client: Client) -> None:
    text = text_of(page(client, PAGE))
    years = [int(year) for year in re.findall(r"\b(20\d\d): [A-Z]", text)]
    assert years == [2004, 2005, 2006, 2008, 2025]
    for one in experiments():
        part = _part(client, one.year)
        assert one.source in part
        assert one.differs in part
        assert f"manage.py submit {one.name}" in part
        assert f"{len(one.effects)} published effects" in part


@pytest.mark.django_db
def test_published_contention_is_there_before_the_first_run(client: Client) -> None:
    part = _part(client, 2006)
    assert re.search(r"descriptor table 2\.58.% 46.039 41\.45.% 533.438 \S \S not measured here", part)


@pytest.mark.django_db
def test_the_newest_finished_run_is_beside_the_published_effects(client: Client) -> None:
    _run_of("dispatch-2005", CONNECT)
    newest = _run_of("dispatch-2005", CONNECT)
    _run_of("dispatch-2005", CONNECT, state=RunState.FAILED)
    part = _part(client, 2005)
    assert f"Measured on this site run {newest.pk} on" in part
    assert "manage.py submit" not in part
    row = part.partition(f"{CONNECT} direct against the baseline")[2].partition("host-router-host")[0]
    assert re.search(
        r"\+12\.24 % ±0\.50 % one-processor kernel 7\.90 \+1[12]\.\d+ .* the same sign, and the size agrees", row
    )


@pytest.mark.django_db
def test_a_sample_is_shown_until_there_is_a_result_of_this_site(client: Client) -> None:
    real, sample = (_run_of("dispatch-2005", CONNECT) for _ in range(2))
    elsewhere = sample.testbed
    elsewhere.pk, elsewhere.name, elsewhere.sample = None, "sample-lab", "measured elsewhere"
    elsewhere.save()
    sample.testbed = elsewhere
    sample.save()
    assert f"Measured on this site run {real.pk} on" in _part(client, 2005)
    Run.objects.filter(pk=real.pk).update(state=RunState.FAILED)
    assert re.search(rf"Measured on this site run {sample.pk} on .*\(sample\)", _part(client, 2005))


@pytest.mark.django_db
def test_a_run_of_the_simulated_machine_has_a_column_of_its_own(client: Client) -> None:
    run = _run_of("sim", SIMULATED)
    names = {"deferred": "exclusive", "direct": "shared-socket"}
    for variant in run.variants.all():
        variant.name = names[variant.name]
        variant.save()
    part = _part(client, 2025)
    assert "manage.py submit parallel-2025" in part
    assert f"Simulated on this site run {run.pk} on" in part
    assert re.search(
        r"mem\.tcp\.1/host-host/ipv4 shared-socket against the baseline \S25.* \S \+1[12]\.\d+ .* the other sign", part
    )
    on_the_run = text_of(page(client, f"/runs/{run.pk}/"))
    assert re.search(rf"{SIMULATED} shared-socket against exclusive \S25", on_the_run)


@pytest.mark.django_db
def test_the_page_has_the_values_of_the_documents(client: Client) -> None:
    text = text_of(page(client, PAGE))
    for one in experiments():
        for row in recorded(one.year):
            assert " ".join(row.title.split()) in text
            assert " ".join(row.here.split()) in text


def test_each_row_of_the_tables_in_the_documents_belongs_to_an_experiment() -> None:
    found = [row for one in experiments() for row in recorded(one.year)]
    for document, heading in TABLES:
        section = documents()[document].text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
        rows = [line for line in section.splitlines() if line.startswith("|")][2:]
        assert rows
        assert len(rows) == len([row for row in found if row.document == document])
    assert all(row.sign in ("as published", "opposite sign") for row in found)
    assert {row.kind for row in found} == {"measured", "simulated"}


def test_a_recorded_change_is_written_as_on_other_pages() -> None:
    found = {row.title: row.here for row in recorded(2005)}
    assert found["direct against deferred, packets forwarded in a second of CPU"].count("\u202f%") == 1
    large = "direct against deferred, a stream through a router, 1 CPUs (xeon-2005)"
    assert found[large] == f"{TIMES}1\u202f153"
    assert all("-" not in row.here for one in experiments() for row in recorded(one.year))
