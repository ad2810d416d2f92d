# SPDX-License-Identifier: BSD-2-Clause
"""Published figures beside a run's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from django.test import Client

from perfweb.reports.published import FIGURES
from perfweb.runs.models import Run
from perfweb.runs.planfile import read_plan
from tests.factories import create_plan, create_run
from tests.unit.reports.test_pages import page, text_of

pytestmark = pytest.mark.django_db
TEST = "tcpconnect/host-host/ipv4"
PLANS = Path("perfweb/runs/plans")


def _repeat(gain: float, noise: float = 0.005, tests: list[str] | None = None) -> Run:
    """A run of dispatch-2005, whose baseline is deferred and not queue: only `direct` is looked for."""
    run = create_run(tests=tests or [TEST], gain=gain, noise=noise, boots=5)
    run.plan = create_plan("name: dispatch-2005", name="dispatch-2005")
    run.save()
    return run


def _said(client: Client, run: Run) -> str:
    text = text_of(page(client, f"/runs/{run.pk}/"))
    return text.partition("Beside what was published")[2].partition("Effects are")[0]


@pytest.mark.parametrize(
    ("gain", "words"),
    [(1.1224, "the same sign, and the size agrees"), (1.3, "the same sign"), (0.9, "the other sign")],
)
def test_a_proven_effect_has_a_sign(client: Client, gain: float, words: str) -> None:
    said = _said(client, _repeat(gain))
    assert "Robert Watson" in said
    row = said.partition(f"{TEST} direct")[2].partition("direct")[0]
    assert "+12.24" in row
    assert f" {words} tcp" in row
    assert said.count("not measured here") == 8


def test_what_is_not_proven_says_what_could_have_been_seen(client: Client) -> None:
    said = _said(client, _repeat(1.0, noise=0.05))
    assert "no difference proven; the run could have seen " in said


def test_a_difference_where_there_was_none(client: Client) -> None:
    said = _said(client, _repeat(1.3, tests=["udp.stream/host-host/ipv4"]))
    assert re.search(r"direct none \+(29|30)\.", said)
    assert "a difference here, none there" in said


def test_other_plans_have_no_such_section(client: Client, run: Run) -> None:
    assert "Beside what was published" not in page(client, f"/runs/{run.pk}/")


def test_every_published_effect_is_one_that_its_plan_measures() -> None:
    for name, published in yaml.safe_load(FIGURES.read_text(encoding="utf-8")).items():
        plan = read_plan((PLANS / f"{name}.yaml").read_text(encoding="utf-8"))
        assert plan.name == name
        for effect in published["effects"]:
            assert effect["variant"] in {variant.name for variant in plan.variants} - {plan.baseline}
            assert effect["test"] in {test.name for test in plan.tests}
            assert isinstance(effect.get("percent"), int | float) or effect["was"] > 0
