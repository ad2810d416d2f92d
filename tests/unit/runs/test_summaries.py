# SPDX-License-Identifier: BSD-2-Clause
"""Summaries equal the counted samples."""

from __future__ import annotations

import statistics
from dataclasses import astuple

import pytest
from django.core.management import call_command

from perfweb.runs import states
from perfweb.runs.judging import counted_samples, judged
from perfweb.runs.models import MeasurementState, Run, RunState, Sample, Summary
from perfweb.runs.summaries import environment_digest, summaries_of, summarise
from perfweb.stats.comparison import among
from tests.factories import DEMO_TESTS, create_queued_run, create_run

pytestmark = pytest.mark.django_db


def test_a_summary_is_that_of_the_counted_samples() -> None:
    run = create_run(tests=DEMO_TESTS[:2], failed_test=DEMO_TESTS[1])
    summarise([run.pk])
    assert Summary.objects.filter(run=run).count() == 3  # the failed test has none on `direct`
    for summary in Summary.objects.filter(run=run):
        values = list(
            Sample.objects.counted()
            .filter(measurement__boot__variant=summary.variant, measurement__test=summary.test)
            .values_list("value", flat=True)
        )
        assert (summary.n, summary.minimum, summary.maximum) == (len(values), min(values), max(values))
        assert summary.mean == pytest.approx(statistics.mean(values), rel=1e-12)
        assert summary.deviation == pytest.approx(statistics.stdev(values), rel=1e-9)
        assert summary.series == f"demo/direct-or-deferred/{summary.variant.name}"


def test_making_them_anew_replaces_them() -> None:
    run = create_run(tests=DEMO_TESTS[:1])
    summarise([run.pk])
    Sample.objects.filter(measurement__boot__variant__name="direct").update(value=1.0)
    call_command("summarise", str(run.pk))
    assert list(run.summaries.values_list("variant__name", "deviation").order_by("variant__name"))[1] == ("direct", 0)
    run.boots.get(pk=run.boots.all()[0].pk).measurements.update(state=MeasurementState.VOID, reason="pause frames")
    call_command("summarise")
    assert Summary.objects.get(run=run, variant=run.boots.all()[0].variant).n == 5


def test_a_verdict_is_kept_with_the_statistics_that_gave_it() -> None:
    run = create_run(failed_test=DEMO_TESTS[1])
    (fresh,) = summaries_of([run]).values()
    assert not Summary.objects.exists()
    summarise([run.pk])
    (kept,) = summaries_of([run]).values()
    numbers = [[(one.variant_id, one.test, *facts(one)) for one in rows] for rows in (fresh, kept)]
    assert sorted(numbers[0]) == sorted(numbers[1])
    counted = counted_samples([run])[run.pk]
    a, b = run.variants.all()
    compared = among([judged(counted.sets[a.pk, test], counted.sets[b.pk, test]) for test in DEMO_TESTS[2:]])
    rows = {one.test: one for one in kept if one.variant_id == b.pk}
    for test, result in zip(DEMO_TESTS[2:], compared, strict=True):
        assert result.effect
        assert facts(rows[test]) == (str(result.verdict), *astuple(result.effect.interval), False)
    assert {one.verdict for one in kept if one.variant_id == a.pk} == {""}


def facts(row: Summary) -> tuple[str, float | None, float | None, float | None, bool]:
    return row.verdict, row.change, row.change_low, row.change_high, row.boots_differ


def test_what_other_statistics_judged_is_judged_anew() -> None:
    run = create_run(tests=DEMO_TESTS[:1])
    summarise([run.pk])
    Summary.objects.update(verdict="slower")
    assert {one.verdict for one in summaries_of([run])[run.pk]} == {"slower"}
    Summary.objects.update(rules="others")
    assert {one.verdict for one in summaries_of([run])[run.pk]} == {"", "faster"}


def test_of_a_run_that_is_not_over_nothing_kept_counts() -> None:
    run = create_run(tests=DEMO_TESTS[:1])
    summarise([run.pk])
    Summary.objects.update(mean=1.0)
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    assert all(one.mean > 1 for one in summaries_of([Run.objects.get(pk=run.pk)])[run.pk])


def test_the_end_of_a_run_makes_its_summaries() -> None:
    run = create_run(tests=DEMO_TESTS[:1])
    Run.objects.filter(pk=run.pk).update(state=RunState.RESTORING)
    states.finish(run.pk)
    assert run.summaries.count() == 2
    queued = create_queued_run()
    states.cancel(queued.pk, "not wanted")
    assert queued.summaries.count() == 0


def test_the_digest_of_an_environment_depends_on_facts_and_not_on_their_order() -> None:
    digest = environment_digest([("left", {"kernel": "6.1", "cpus": 2}), ("dut", {"kernel": "6.1"})])
    assert digest == environment_digest([("dut", {"kernel": "6.1"}), ("left", {"cpus": 2, "kernel": "6.1"})])
    assert digest != environment_digest([("left", {"kernel": "6.2", "cpus": 2}), ("dut", {"kernel": "6.1"})])
    assert digest == environment_digest(
        [("left", {"kernel": "6.1", "cpus": 2, "load_average": "1.0"}), ("dut", {"kernel": "6.1"})]
    )
    assert environment_digest([]) == ""
