# SPDX-License-Identifier: BSD-2-Clause
"""A suspicion is measured with enough boots to decide it; an undecided one is checked again, but not for ever."""

from __future__ import annotations

import pytest

from perfweb.runs.models import Run
from perfweb.runs.planfile import read_plan
from perfweb.tracking.models import Alert, AlertState, TrackedBranch
from perfweb.tracking.sizing import FEWEST_BOOTS
from tests.laboratory import Laboratory, tracked

pytestmark = pytest.mark.django_db
QUIET = 0.002


def step(laboratory: Laboratory, speed: float, budget: int = 240) -> TrackedBranch:
    """A branch of sixteen commits, the ninth of which changes its speed."""
    shas = [laboratory.commit(number, 1.0 if number < 8 else speed) for number in range(16)]
    return tracked(shas[0], budget=budget)


def boots(alert: Alert) -> list[int]:
    """The boots of each check of the commit after the change."""
    return [read_plan(check.run.plan.text).boots for check in alert.checks.filter(commit=alert.until).order_by("pk")]


def loud_checks(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, most: int, noise: float) -> None:
    """The first checks scatter so much that they decide nothing; all others are quiet."""
    measure, seen = Laboratory.measure, list[int]()

    def measured(self: Laboratory, run: Run) -> None:
        if run.variants.count() == 2:
            seen.append(run.number)
        self.noise = noise if run.number in seen[:most] else QUIET
        measure(self, run)

    monkeypatch.setattr(Laboratory, "measure", measured)


def test_a_clear_change_takes_few_boots_and_a_small_one_in_noise_many(laboratory: Laboratory) -> None:
    branch = step(laboratory, 0.93)
    laboratory.rest()
    assert boots(branch.alerts.get()) == [FEWEST_BOOTS]


def test_a_small_change_in_noise_takes_many_boots(laboratory: Laboratory) -> None:
    laboratory.noise = 0.04
    branch = step(laboratory, 0.965)
    laboratory.rest()
    alert = branch.alerts.exclude(state=AlertState.REFUTED).get()
    assert min(boots(alert)) > FEWEST_BOOTS
    assert alert.culprit is not None
    assert alert.culprit.position == 9


def test_what_is_left_open_is_measured_again_with_twice_the_boots(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    loud_checks(laboratory, monkeypatch, most=1, noise=0.3)
    branch = step(laboratory, 0.93)
    laboratory.rest()
    alert = branch.alerts.get()
    assert alert.state == AlertState.CONFIRMED
    assert boots(alert)[:2] == [FEWEST_BOOTS, 2 * FEWEST_BOOTS]
    steps = list(alert.steps.values_list("to_state", "text"))
    assert "more boots will decide" in steps[1][1]
    assert [state for state, _ in steps if state] == ["new", "confirmed"]


def test_what_stays_open_is_refuted_after_three_looks(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    loud_checks(laboratory, monkeypatch, most=99, noise=1.0)
    branch = step(laboratory, 0.93)
    laboratory.rest()
    alert = branch.alerts.get()
    assert alert.state == AlertState.REFUTED
    assert boots(alert) == [FEWEST_BOOTS, 2 * FEWEST_BOOTS, 4 * FEWEST_BOOTS]


def test_a_small_budget_pays_for_few_boots(laboratory: Laboratory) -> None:
    laboratory.noise = 0.04
    branch = step(laboratory, 0.965, budget=1)
    laboratory.rest()
    found = [count for alert in branch.alerts.all() for count in boots(alert)]
    assert found
    assert set(found) == {FEWEST_BOOTS}
