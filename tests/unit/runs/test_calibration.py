# SPDX-License-Identifier: BSD-2-Clause
"""A/A runs calibrate their testbed, and plans with a budget use it."""

from __future__ import annotations

import math

import pytest
from django.core.management import CommandError, call_command
from pytest_django import DjangoCaptureOnCommitCallbacks

from perfweb.runs import services, states
from perfweb.runs.budget import within_budget
from perfweb.runs.calibration import TESTS, calibrate, newest_of, noise_of, noises, plan_text, same
from perfweb.runs.models import Calibration, Run, RunState
from perfweb.runs.planfile import PlanError, read_plan
from perfweb.stats.design.falsealarms import VERDICT
from tests.factories import create_calibrated, create_run, create_testbed

pytestmark = pytest.mark.django_db

BUDGET = """\
name: within
baseline: deferred
variants: [{name: deferred, target: stack}, {name: direct, target: linux}]
tests: [tcp.rr/host-host/ipv4]
budget: 10 min
"""


def test_noise_is_split_into_boots_and_samples_and_false_alarms_are_counted() -> None:
    run = create_calibrated()
    (row,) = run.calibrations.all()
    assert (row.test, row.boots, row.samples) == (TESTS[0], 16, 64)
    assert row.boot_deviation == pytest.approx(3.0, rel=0.5)
    assert row.sample_deviation == pytest.approx(0.5, rel=0.3)
    assert row.boot_seconds == pytest.approx(10)  # 15 s, five of which a measurement with samples of one second took
    assert (row.comparisons, row.disjoint, row.blocks) == (4 * 16, 1, 5)
    assert row.alarms["all samples, Welch"]["share"] > row.alarms[VERDICT]["share"]


def test_where_boots_had_layouts_their_scatter_stands_by_itself() -> None:
    run = create_calibrated(boots=0.005, layouts=0.04)
    (row,) = run.calibrations.all()
    assert row.layout_deviation == pytest.approx(4.0, rel=0.5)
    assert row.boot_deviation == pytest.approx(0.5, rel=0.8)
    assert create_calibrated().calibrations.get().layout_deviation is None
    alone, together = noise_of(row), noise_of(row, layouts=True)
    assert (alone.boots, alone.samples) == (row.boot_deviation, together.samples)
    assert together.boots == pytest.approx(math.hypot(row.boot_deviation, row.layout_deviation or 0))


def test_runs_of_different_variants_or_few_boots_are_no_calibration() -> None:
    different = create_run(tests=TESTS[:1], boots=6, samples=12)
    calibrate(different.number)
    assert same(different.variants.all()) == []
    create_calibrated(blocks=4)
    assert not Calibration.objects.exists()


def test_the_end_of_a_run_keeps_it(django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks) -> None:
    run = create_calibrated()
    Calibration.objects.all().delete()
    Run.objects.filter(pk=run.pk).update(state=RunState.RESTORING)
    with django_capture_on_commit_callbacks(execute=True):
        states.finish(run.number)
    assert Calibration.objects.get().run == run
    call_command("summarise", str(run.number))
    assert Calibration.objects.get().run == run


def test_the_newest_calibration_of_a_test_counts() -> None:
    create_calibrated()
    newer = create_calibrated(boots=0.01)
    assert [row.run for row in newest_of(newer.testbed)] == [newer]
    noise, seconds = noises(newer.testbed, TESTS)[TESTS[0]]
    assert (noise.boots, seconds) == (newer.calibrations.get().boot_deviation, 10)


def test_a_budget_buys_boots_where_boots_differ_and_samples_where_they_do_not() -> None:
    run = create_calibrated()
    boots = read_plan(within_budget(BUDGET, run.testbed))
    assert boots.budget is None
    assert boots.samples <= 2 * boots.boots
    assert 480 < 2 * boots.boots * (10 + (boots.samples / boots.boots + boots.discard) * 1.11) <= 600
    Calibration.objects.update(boot_deviation=0.1, sample_deviation=2.0)
    samples = read_plan(within_budget(BUDGET, run.testbed))
    assert samples.samples > 10 * samples.boots
    assert samples.boots < boots.boots


def test_a_budget_counts_the_boots_of_the_sentinel() -> None:
    run = create_calibrated()
    plain = read_plan(within_budget(BUDGET, run.testbed))
    watched = read_plan(within_budget(f"{BUDGET}sentinel: 2\n", run.testbed))
    each, per_boot = 10 + 3 * 1.11, 10 + (watched.samples / watched.boots + watched.discard) * 1.11
    assert 480 < (watched.boots + 1) * each + 2 * watched.boots * per_boot <= 600
    assert watched.boots < plain.boots


def test_a_run_with_a_budget_keeps_the_plan_that_it_measures() -> None:
    run = services.submit(BUDGET, create_testbed().name)
    assert read_plan(run.plan.text).budget is None
    assert services.submit(run.plan.text, "demo").plan == run.plan


def test_what_cannot_be_done_within_a_budget_is_reported() -> None:
    create_testbed()
    with pytest.raises(services.RunError, match=r"too short: two boots of each variant take 3\.0 min"):
        services.submit(BUDGET.replace("10 min", "1 min").replace("budget", "seconds: 20\nbudget"), "demo")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("budget: 10", "allowed: 1 min to 24 h"),
        ("budget: 30 s", "allowed: 1 min to 24 h"),
        ("budget: 25 h", "allowed: 1 min to 24 h"),
        ("budget: 1 h\nboots: 3", "both boots and samples, or neither"),
        ("budget: 1 h\nstop: decided", "is for plans that measure all boots"),
    ],
)
def test_budgets_that_make_no_sense(line: str, reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        read_plan(BUDGET.replace("budget: 10 min", line))


def test_the_command_queues_a_plan_of_about_so_many_minutes() -> None:
    create_testbed()
    call_command("calibrate", "demo", "--minutes", "10")
    plan = read_plan(Run.objects.get().plan.text)
    assert [test.name for test in plan.tests] == list(TESTS)
    assert (plan.boots, plan.samples) == (20, 40)
    assert read_plan(plan_text("linux", ["tcpconnect/host-host/ipv4"], 0)).boots == 5
    with pytest.raises(CommandError, match=r"allowed: tcp\.rr"):
        call_command("calibrate", "demo", "--test", "tcp.ping")
