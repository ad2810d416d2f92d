# SPDX-License-Identifier: BSD-2-Clause
"""The same comparison on every page, in every text and download: word, mark, number, interval and warnings agree."""

from __future__ import annotations

import csv
import io
import json
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.test import Client

from perfweb.forges.comments import report
from perfweb.mail import answers
from perfweb.rawdata.tables import FORMATS
from perfweb.runs.judging import counted_samples
from perfweb.runs.models import BootState, Run, RunState, Sample
from perfweb.runs.summaries import summarise
from perfweb.stats.comparison import Lack, Verdict
from perfweb.stats.ratio import Change
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.verdicts.comparisons import TestComparison
from perfweb.verdicts.doubts import run_pairs
from perfweb.verdicts.numbers import NOTHING
from perfweb.verdicts.run_verdicts import verdicts
from perfweb.verdicts.text import run_text
from perfweb.verdicts.wording import MARKS, change_words, difference_words
from tests.factories import (
    DEMO_TESTS,
    create_build,
    create_calibrated,
    create_run,
    create_submission,
    create_testbed,
    create_watched_run,
    faster_later,
    make_void,
)
from tests.unit.forges.test_comments import comment_request  # noqa: F401 (a fixture)

pytestmark = pytest.mark.django_db
TEST = DEMO_TESTS[0]
MANY = 2
"""A seed with which chance makes a difference in one of six tests."""


def _one(**wanted: object) -> Run:
    return create_run(tests=[TEST], boots=4, samples=12, **wanted)  # type: ignore[arg-type]


def _void() -> Run:
    run = _one()
    for measurement in run.boots.get(position=0).measurements.all():
        make_void(measurement, 0, "the host was busy")
    failed = Sample.objects.filter(measurement__boot__run=run, measurement__boot__variant__name="direct")
    failed.update(void="the host was busy")
    for boot in run.boots.filter(variant__name="direct"):
        boot.measurements.update(state="void", reason="every sample is void")
    return run


def _crashed() -> Run:
    run = _one()
    boots = run.boots.filter(variant__name="direct")
    for boot in boots:
        boot.measurements.all().delete()
    boots.update(state=BootState.FAILED, error="it did not boot")
    return run


def _many() -> Run:
    """Six tests without a difference, one of which seems to have one by chance."""
    return create_run(boots=4, samples=8, discard=0, gain=1.0, noise=0.03, seed=MANY)


MADE: dict[str, tuple[Callable[[], Run], Verdict, Lack | None, list[str]]] = {
    "faster": (lambda: _one(gain=1.2), Verdict.FASTER, None, []),
    "slower": (lambda: _one(gain=0.8), Verdict.SLOWER, None, []),
    "equivalent": (lambda: _one(gain=1.0, noise=0.001), Verdict.EQUIVALENT, None, []),
    "noisy": (lambda: _one(gain=1.0, noise=0.2), Verdict.NOT_ENOUGH_DATA, Lack.PRECISION, []),
    "one boot": (lambda: create_run(tests=[TEST], boots=1), Verdict.NOT_ENOUGH_DATA, Lack.BOOTS, []),
    "failed": (lambda: _one(failed_test=TEST), Verdict.FAILED, Lack.RESULT, []),
    "not booted": (_crashed, Verdict.FAILED, Lack.RESULT, []),
    "void": (_void, Verdict.NOT_ENOUGH_DATA, Lack.VALIDITY, []),
    "boots differ": (lambda: create_calibrated(4, boots=0.05, samples=0.001), Verdict.NOT_ENOUGH_DATA, Lack.PRECISION,
                     ["boots differ"]),
    "sentinel": (lambda: create_watched_run([TEST], order="aaaabbbb", level=faster_later, gain=1.0), Verdict.FASTER,
                 None, ["sentinel +"]),
    "many tests": (_many, Verdict.NOT_ENOUGH_DATA, Lack.CERTAINTY, []),
}  # fmt: skip


@dataclass
class Shown:
    """What a channel shows about one test: its text, and whether it has room for the interval, mark and warnings."""

    text: str
    mark: bool = True
    interval: bool = True


def plain(html: str) -> str:
    """The text of a page or picture."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).replace("\N{NARROW NO-BREAK SPACE}", " ").split())


def table_row(html: str, test: str) -> str:
    """The row of a test in the first table that has it."""
    rows = re.findall(r"<tr>.*?</tr>", html, re.DOTALL)
    return next(plain(row) for row in rows if f">{test}<" in row)


def table_cells(content: bytes, form: str, test: str) -> dict[str, Any]:
    """The row of a test in a table of verdicts, with None for what is not there."""
    if form == "csv":
        rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(content.decode())))
    else:
        rows = json.loads(content) if form == "json" else pq.read_table(io.BytesIO(content)).to_pylist()
    row = next(row for row in rows if row["test"] == test)
    return {name: None if cell == "" else cell for name, cell in row.items()}


def table_text(cells: dict[str, Any]) -> str:
    """The verdict of a row, with its interval as pages write it."""
    bounds = [cells[name] for name in ("change", "change_low", "change_high")]
    change = None if bounds[0] is None else Change(*map(float, bounds))
    return "; ".join([cells["words"], cells["cautions"] or "", change_words(change)])


def archived(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        member = opened.extractfile(next(each for each in opened.getnames() if each.endswith(f"/{name}")))
        assert member is not None
        return member.read()


def drawn(client: Client, address: str, test: str) -> dict[str, Shown]:
    """The graph of all intervals, which has no row for a test without one."""
    traces = client.get(f"{address}?graphs=json").json().get("intervals", {"data": []})["data"]
    texts = [text for trace in traces for text in trace.get("text", []) if text.startswith(test)]
    return {"graph": Shown(texts[0], mark=False)} if texts else {}


def channels(
    client: Client, run: Run, one: TestComparison, comment: str, mail: str, submission: Submission
) -> dict[str, Shown]:
    pair = f"/runs/{run.pk}/compare/{one.a}..{one.b}"
    tests = client.get(f"/api/v1/runs/{run.pk}/comparisons").json()["items"][0]["tests"]
    shown = next(row for row in tests if row["test"] == one.test)
    lines = [line for line in run_text(run).splitlines() if line.startswith(f"{one.test} ")]
    badge = client.get(f"{pair}/badge.svg", {"test": one.test})
    archives = {"run": f"/runs/{run.pk}/raw.tar", "comparison": f"{pair}/raw.tar"}
    tables = {
        f"{form} of the {what}": table_cells(client.get(f"{address}/verdicts.{form}").getvalue(), form, one.test)
        for what, address in {"run": f"/runs/{run.pk}", "comparison": pair}.items()
        for form in FORMATS
    } | {
        f"archive of the {what}": table_cells(
            archived(client.get(address).getvalue(), "verdicts.json"), "json", one.test
        )
        for what, address in archives.items()
    }
    pages = {"run": f"/runs/{run.pk}/?test={one.test}", "comparison": f"{pair}/",
             "submission": f"/submissions/{submission.number}/"}  # fmt: skip
    return {
        **{
            f"page of the {what}": Shown(table_row(client.get(address).content.decode(), one.test))
            for what, address in pages.items()
        },
        **{name: Shown(table_text(cells), mark=False) for name, cells in tables.items()},
        **drawn(client, f"{pair}/", one.test),
        "api": Shown("; ".join([shown["words"], shown["difference"], *shown["cautions"]]), mark=False),
        "perfctl": Shown(lines[0], mark=False),
        "badge": Shown(plain(b"".join(badge).decode()), interval=False),
        "comment": Shown(comment, mark=False),
        "mail": Shown(mail, mark=False),
    }


@pytest.mark.parametrize("name", MADE)
def test_every_channel_shows_the_same(client: Client, comment_request: object, name: str) -> None:  # noqa: F811
    make, verdict, lack, cautions = MADE[name]
    run = make()
    summarise([run.pk])
    (pair,) = run_pairs(run, counted_samples([run])[run.pk])
    one = next(one for one in pair.compared if lack is None or one.lack is lack)
    assert (one.verdict, one.lack) == (verdict, lack)
    assert len(one.cautions) == len(cautions)
    submission = create_submission(SubmissionState.APPROVED)
    submission.runs.add(run)
    comment_request.submissions.add(submission)  # type: ignore[attr-defined]
    comment, mail = report(comment_request).body, answers.result([submission], "perf: tcp", trailer=True)  # type: ignore[arg-type]
    wanted = difference_words(one.result).replace("\N{NARROW NO-BREAK SPACE}", " ")
    for channel, shown in channels(client, run, one, plain(comment), " ".join(mail.split()), submission).items():
        text = " ".join(shown.text.replace("\N{NARROW NO-BREAK SPACE}", " ").split())
        assert str(verdict) in text, channel
        assert not shown.mark or MARKS[verdict] in text, channel
        assert not shown.interval or wanted == NOTHING or wanted in text, channel
        assert all(caution in text for caution in cautions), channel
        if lack is Lack.CERTAINTY:
            assert "many tests" in text, channel
    ((_, (listed,)),) = verdicts([run])
    first = next(kind for kind in Verdict if kind in {test.verdict for test in pair.compared})
    for summary in (
        listed.tally,
        plain(client.get("/runs/").content.decode()),
        plain(client.get(f"/runs/{run.pk}/").content.decode()),
        plain(client.get(f"/runs/{run.pk}/compare/{pair.a.name}..{pair.b.name}/").content.decode()),
        client.get(f"/api/v1/runs/{run.pk}").json()["verdicts"][0]["words"],
        client.get(f"/api/v1/runs/{run.pk}/comparisons").json()["items"][0]["words"],
        run_text(run),
        comment,
        mail,
    ):
        assert listed.tally in " ".join(summary.replace("\N{NARROW NO-BREAK SPACE}", " ").split())
    badge = b"".join(client.get(f"/runs/{run.pk}/compare/{pair.a.name}..{pair.b.name}/badge.svg")).decode()
    assert f"{MARKS[first]} {listed.tally}" in plain(badge)


def test_an_interval_of_many_tests_includes_zero_wherever_it_is_shown(client: Client) -> None:
    run = _many()
    (pair,) = run_pairs(run, counted_samples([run])[run.pk])
    taken_back = [one for one in pair.compared if one.lack is Lack.CERTAINTY]
    assert taken_back
    for one in taken_back:
        assert one.change is not None
        assert one.change.low <= 0 <= one.change.high
    drawn = client.get(f"/runs/{run.pk}/compare/deferred..direct/?graphs=json").json()["intervals"]["data"]
    for one in taken_back:
        assert one.change is not None
        (trace,) = [trace for trace in drawn if f"{one.test} (many tests)" in trace["y"]]
        place = trace["y"].index(f"{one.test} (many tests)")
        assert trace["x"][place] - trace["error_x"]["arrayminus"][place] == pytest.approx(one.change.low)


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.DONE}))
def test_a_run_that_is_not_done_has_no_verdict(client: Client, state: RunState) -> None:
    run = create_run(tests=DEMO_TESTS[:2], gain=1.2)
    Run.objects.filter(pk=run.pk).update(state=state)
    run.refresh_from_db()
    for address in ("/", "/runs/", f"/runs/{run.pk}/", f"/runs/{run.pk}/compare/deferred..direct/"):
        html = client.get(address).content.decode()
        assert not re.search(r"verdict faster|\b2 faster|▲ (?!faster,)", html), address
    assert client.get(f"/api/v1/runs/{run.pk}").json()["verdicts"] == []
    (comparison,) = client.get(f"/api/v1/runs/{run.pk}/comparisons").json()["items"]
    assert {test["verdict"] for test in comparison["tests"]} == {"not judged"}
    assert comparison["words"] == "2 not judged"
    badge = client.get(f"/runs/{run.pk}/compare/deferred..direct/badge.svg")
    assert "… 2 not judged" in plain(b"".join(badge).decode())


@pytest.mark.parametrize(
    ("change", "words"),
    [("kernel", "other kernel"), ("machine", "other machine"), ("testbed", "other testbed"), ("build", "other build")],
)
def test_a_verdict_between_runs_has_what_differs_in_its_cell(client: Client, change: str, words: str) -> None:
    first, second = _one(gain=1.2), _one(gain=1.2, seed=2)
    assert "⚠ other" not in plain(_compared(client, first, second))
    _differ(second, change)
    html = _compared(client, first, second)
    assert f"⚠ {words}" in table_row(html, TEST)
    query = {"base": f"{first.pk}/deferred", "with": f"{second.pk}/direct"}
    (comparison,) = client.get("/api/v1/comparisons", query).json()["items"]
    assert words in comparison["tests"][0]["cautions"]
    assert words in comparison["text"]
    table = b"".join(client.get("/compare/verdicts.csv", query)).decode()
    assert next(csv.DictReader(io.StringIO(table)))["cautions"].startswith(words)
    for selection in ({}, {"test": TEST}):
        badge = client.get("/compare/badge.svg", query | selection)
        assert f"⚠ {words}" in plain(b"".join(badge).decode())
    several = client.get(f"/compare/?base={first.pk}/deferred&with={first.pk}/direct&with={second.pk}/direct")
    assert table_row(several.content.decode(), TEST).count(f"⚠ {words}") == 1


def _compared(client: Client, first: Run, second: Run) -> str:
    return client.get(f"/compare/?base={first.pk}/deferred&with={second.pk}/direct").content.decode()


def _differ(run: Run, what: str) -> None:
    if what == "testbed":
        Run.objects.filter(pk=run.pk).update(testbed=create_testbed("other"))
    elif what == "build":
        run.variants.update(build=create_build("other", "v0.2"))
    else:
        for host in run.host_facts.all():
            host.facts |= {"kernel": "6.9"} if what == "kernel" else {"cpus": 64}
            host.save()
