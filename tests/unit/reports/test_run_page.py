# SPDX-License-Identifier: BSD-2-Clause
"""The page of a run: its outcome in a line, its commands, another run of it, and the difference of two boots."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from perfweb.accounts.models import Entry, Role, User
from perfweb.reports.pages.boots import difference
from perfweb.runs.management.commands.submit import PLANS
from perfweb.runs.models import ArtefactKind, Run
from perfweb.runs.summaries import summarise
from tests.factories import (
    DEMO_TESTS,
    create_artefact,
    create_plan,
    create_run,
    create_submission,
    create_watched_run,
)
from tests.unit.pages import page, text_of

pytestmark = pytest.mark.django_db


def repeatable() -> Run:
    """A finished run of a plan that can be read."""
    run = create_run(tests=DEMO_TESTS[:1])
    run.plan = create_plan((PLANS / "demo.yaml").read_text(encoding="utf-8"), "demo", "Demonstration")
    run.save()
    return run


def outcome(client: Client, run: Run) -> str:
    found = re.search(r'<div class="strip".*?</div>', page(client, f"/runs/{run.pk}/"), re.DOTALL)
    assert found is not None
    return text_of(found[0])


def test_the_outcome_counts_verdicts_and_what_failed(client: Client) -> None:
    run = create_run(failed_test=DEMO_TESTS[0])
    summarise([run.pk])
    found = outcome(client, run)
    assert re.search(r"✗1 ▲5 direct against deferred, 95 %", found)
    assert "⚠ 2 measurements failed or void 0 void samples" in found.replace("\n", " ")
    again = create_run(kernel="6.1.0-29-amd64")
    assert "⚠ hosts changed" in outcome(client, again)
    assert f"hosts unchanged since run {again.pk}" in outcome(client, create_run(kernel="6.1.0-29-amd64"))


@pytest.mark.parametrize(("level", "word"), [(lambda share: 0.96**share, "⚠ drift"), (lambda _: 1.0, "steady")])
def test_the_outcome_has_the_sentinel(client: Client, level: Callable[[float], float], word: str) -> None:
    assert word in outcome(client, create_watched_run(level=level))


def test_commands_are_given_by_variant_where_they_differ(client: Client) -> None:
    run = create_run(tests=DEMO_TESTS[:1])
    assert "Commands by variant" not in page(client, f"/runs/{run.pk}/")
    for boot in run.boots.filter(variant__name="direct"):
        boot.measurements.update(command="netperf -T 1,1")
    text = text_of(page(client, f"/runs/{run.pk}/"))
    assert "Commands by variant" in text
    assert re.search(r"direct:\s+netperf -T 1,1", text)


def test_a_maintainer_measures_a_run_again(client: Client) -> None:
    run = repeatable()
    address = f"/runs/{run.pk}/again/"
    assert address in page(client, f"/runs/{run.pk}/")
    client.force_login(User.objects.create_user("ann", role=Role.MAINTAINER))
    assert "another random order" in page(client, address)
    made = Run.objects.get(pk=int(client.post(address).headers["Location"].strip("/").rpartition("/")[2]))
    assert (made.plan, made.testbed, made.requested_by, made.state) == (run.plan, run.testbed, "ann", "queued")
    assert Entry.objects.values_list("action", "subject", "detail").get() == (
        "measure again", f"run {run.pk}", f"run {made.pk}",
    )  # fmt: skip
    assert "/again/" not in page(client, f"/runs/{made.pk}/")  # it has not ended
    assert client.get("/runs/4711/again/").status_code == 404


def test_a_run_of_a_patch_is_measured_again_on_the_page_of_its_submission(client: Client) -> None:
    run = create_run(tests=DEMO_TESTS[:1])
    submission = create_submission()
    submission.runs.add(run)
    client.force_login(User.objects.create_user("ann", role=Role.MAINTAINER))
    text = page(client, f"/runs/{run.pk}/again/")
    assert f"/submissions/{submission.pk}/actions/" in text
    assert "<form method" not in text


def test_a_run_whose_testbed_is_gone_is_not_measured_again(client: Client) -> None:
    run = repeatable()
    run.testbed.inventory = ""
    run.testbed.save()
    assert "/again/" not in page(client, f"/runs/{run.pk}/")
    client.force_login(User.objects.create_user("ann", role=Role.MAINTAINER))
    answer = client.post(f"/runs/{run.pk}/again/")
    assert (answer.status_code, Run.objects.count()) == (409, 1)
    assert "imported results only" in answer.content.decode()


def test_two_boots_differ_by_their_logs_and_tunables(client: Client) -> None:
    run = create_run(tests=DEMO_TESTS[:1])
    run.artefacts.all().delete()
    first, second, third, *_ = run.boots.order_by("position")
    texts = {first: "a: 1\nb: 2\n", second: "a: 1\nb: 3\n", third: "a: 1\nb: 2\n"}
    for boot, text in texts.items():
        create_artefact(run, f"boots/{boot.position}/tunables.txt", text, ArtefactKind.TUNABLES, boot=boot)
        log = f"[    0.{boot.position}] attach: <ok>\n"
        create_artefact(run, f"boots/{boot.position}/boot.log", log, ArtefactKind.BOOT_LOG, boot=boot)
    found = page(client, f"/runs/{run.pk}/boots/")
    assert '<span class="removed">-b: 2</span>\n<span class="added">+b: 3</span>' in found
    assert "No difference." in found  # in the logs, whose times do not count
    assert found.count("selected") == 2
    same = page(client, f"/runs/{run.pk}/boots/?a={first.position}&b={third.position}")
    assert same.count("No difference.") == 2


@pytest.mark.parametrize("query", ["a=99", "b=x", "a=-1"])
def test_an_unknown_boot_is_reported(client: Client, query: str) -> None:
    run = create_run(tests=DEMO_TESTS[:1])
    answer = client.get(f"/runs/{run.pk}/boots/?{query}")
    assert answer.status_code == 400
    assert "“" in answer.content.decode() or "There is no boot 99" in answer.content.decode()


def test_a_run_without_boots_has_no_difference(client: Client) -> None:
    run = create_run(tests=[])
    assert "fewer than two boots" in page(client, f"/runs/{run.pk}/boots/")
    assert client.get("/runs/4711/boots/").status_code == 404


def test_changed_lines_are_beside_each_other() -> None:
    found = difference("boot.log", "a\nb\nb\nc 1\nd\n", "a\nb\nc 2\nd\ne\n")
    lines = re.sub(r"<[^>]*>", "", found.lines).split("\n")
    assert lines == ["@@ -1,2 +1,2 @@", "-b", "-c 1", "+c 2", "+e"]
    assert difference("boot.log", "a\nb\n", "b\na\n").lines == ""
