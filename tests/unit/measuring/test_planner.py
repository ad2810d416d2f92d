# SPDX-License-Identifier: BSD-2-Clause
"""The order of boots and samples."""

import re
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from perfweb.measuring.planner import estimate, plan_boots
from perfweb.reports.published import FIGURES
from perfweb.runs import costs
from perfweb.runs.planfile import PlanSpec, SentinelSpec, VariantSpec, read_plan

PLANS = Path(__file__).parents[3] / "perfweb/runs/plans"
DEMO = read_plan((PLANS / "demo.yaml").read_text(encoding="utf-8"))


def plans() -> st.SearchStrategy[PlanSpec]:
    return st.builds(
        lambda names, samples, boots, order: replace(
            DEMO,
            variants=tuple(VariantSpec(name, "stack", (), {}) for name in names),
            baseline=names[0],
            samples=samples + boots,
            boots=boots,
            order=order,
        ),
        st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True),
        st.integers(0, 20),
        st.integers(1, 5),
        st.sampled_from(["abba", "random"]),
    )


def test_demo_has_five_boots_of_each_and_is_expected_to_end_in_time() -> None:
    boots = plan_boots(DEMO, seed=1)
    assert len(boots) == 30
    assert estimate(boots, DEMO.seconds) < 300


@pytest.mark.parametrize("name", yaml.safe_load(FIGURES.read_text(encoding="utf-8")))
def test_plans_of_published_experiments_state_their_duration(name: str) -> None:
    text = (PLANS / f"{name}.yaml").read_text(encoding="utf-8")
    stated = re.search(r"About (\d+)\s(?:# )?minutes", text)
    assert stated is not None
    plan = read_plan(text)
    assert 0.8 < estimate(plan_boots(plan, 1), plan.seconds) / 60 / int(stated[1]) < 1.1


def test_variants_alternate_a_b_b_a() -> None:
    boots = plan_boots(DEMO, seed=1)
    assert [boot.variant for boot in boots[:4]] == ["deferred", "direct", "direct", "deferred"]


def test_tests_are_grouped_by_what_one_process_can_serve() -> None:
    for boot in plan_boots(DEMO, seed=1):
        for planned in boot.measurements:
            assert planned.test.server == boot.server
            assert planned.test.topology == boot.topology
        assert len({planned.test.measure.host for planned in boot.measurements}) == 1


@given(plans(), st.integers(0, 2**31))
def test_every_variant_gets_every_sample(plan: PlanSpec, seed: int) -> None:
    boots = plan_boots(plan, seed)
    counted: Counter[tuple[str, str]] = Counter()
    for boot in boots:
        for planned in boot.measurements:
            assert planned.discard == plan.discard
            assert planned.samples >= 1
            counted[boot.variant, planned.test.name] += planned.samples
    assert counted == {(variant.name, test.name): plan.samples for variant in plan.variants for test in plan.tests}
    assert [boot.position for boot in boots] == list(range(len(boots)))


@given(plans(), st.integers(0, 2**31))
def test_same_seed_same_order(plan: PlanSpec, seed: int) -> None:
    assert plan_boots(plan, seed) == plan_boots(plan, seed)


@given(plans(), st.integers(0, 2**31))
def test_rounds_are_balanced(plan: PlanSpec, seed: int) -> None:
    """In every round each variant boots once, so that no variant gets all of the early or late boots."""
    boots = plan_boots(plan, seed)
    width = len(plan.variants)
    for start in range(0, len(boots), width):
        assert len({boot.variant for boot in boots[start : start + width]}) == width


@given(plans(), st.integers(0, 2**31), st.integers(1, 12))
def test_a_sentinel_boots_first_and_last_and_after_so_many_boots_of_each_server(
    plan: PlanSpec, seed: int, every: int
) -> None:
    sentinel = SentinelSpec(plan.baseline, every, 2)
    boots = plan_boots(replace(plan, sentinel=sentinel), seed)
    assert [boot.position for boot in boots] == list(range(len(boots)))
    without = [replace(boot, position=0) for boot in boots if not boot.sentinel]
    assert without == [replace(boot, position=0) for boot in plan_boots(plan, seed)]
    for _, group in groupby(boots, key=lambda boot: boot.group):
        kinds = "".join("S" if boot.sentinel else "b" for boot in group)
        assert re.fullmatch(rf"(Sb{{{every}}})*(Sb{{1,{every}}})S", kinds)
    watching = next(boot for boot in boots if boot.sentinel)
    assert (watching.variant, {planned.samples for planned in watching.measurements}) == (plan.baseline, {2})
    assert [planned.test for planned in watching.measurements] == [planned.test for planned in without[0].measurements]


def test_boots_of_the_sentinel_take_time() -> None:
    plan = replace(DEMO, sentinel=SentinelSpec("deferred", 5, 2))
    boots = plan_boots(plan, 1)
    assert sum(boot.sentinel for boot in boots) == 9  # at the ends and in the middle of three servers' ten boots each
    more = estimate(boots, plan.seconds) - estimate(plan_boots(DEMO, 1), plan.seconds)
    assert more == pytest.approx(3 * costs.of_sentinel(plan))
