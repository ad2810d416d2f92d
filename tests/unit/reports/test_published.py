# SPDX-License-Identifier: BSD-2-Clause
"""Published results compared with a run's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from django.test import Client

from perfweb.reports.published import FIGURES
from perfweb.runs.models import ArtefactKind, Run
from perfweb.runs.planfile import PROFILES, read_plan
from tests.factories import create_artefact, create_plan, create_run
from tests.unit.pages import page, text_of

pytestmark = pytest.mark.django_db
TEST = "tcpconnect/host-host/ipv4"
PLANS = Path("perfweb/runs/plans")


def _repeat(gain: float, noise: float = 0.005, tests: list[str] | None = None) -> Run:
    """A run of dispatch-2005, whose baseline is deferred and not queue: only `direct` is compared."""
    run = create_run(tests=tests or [TEST], gain=gain, noise=noise, boots=5)
    run.plan = create_plan("name: dispatch-2005", name="dispatch-2005")
    run.save()
    return run


def _section(client: Client, run: Run, heading: str = "Published results") -> str:
    text = text_of(page(client, f"/runs/{run.pk}/"))
    return text.partition(heading)[2].partition("Effects are")[0].partition("A lock without a number")[0]


def _contention(client: Client, run: Run) -> str:
    return _section(client, run, "Contention")


@pytest.mark.parametrize(
    ("gain", "words"),
    [(1.1224, "the same sign, and the size agrees"), (1.3, "the same sign"), (0.9, "the other sign")],
)
def test_a_proven_effect_has_a_sign(client: Client, gain: float, words: str) -> None:
    section = _section(client, _repeat(gain))
    assert "Robert Watson" in section
    row = section.partition(f"{TEST} direct")[2].partition("direct")[0]
    assert "+12.24" in row
    assert f" {words} tcp" in row
    assert section.count("not measured here") == 8


def test_a_row_that_is_not_proven_states_the_detectable_difference(client: Client) -> None:
    section = _section(client, _repeat(1.0, noise=0.05))
    assert "no difference proven; the run could have seen " in section


def test_a_difference_where_there_was_none(client: Client) -> None:
    section = _section(client, _repeat(1.3, tests=["udp.stream/host-host/ipv4"]))
    assert re.search(r"direct against deferred none \+(29|30)\.", section)
    assert "a difference here, none there" in section


def test_effects_against_another_variant_and_without_a_number(client: Client) -> None:
    run = _repeat(0.8, tests=["unix.mysql.11/host-host/ipv4"])
    run.plan = create_plan("name: giant-2004", name="giant-2004")
    run.save()
    names = {"deferred": "giant", "direct": "giant-sleep"}
    for variant in run.variants.all():
        variant.name = names[variant.name]
        variant.save()
    section = _section(client, run)
    assert re.search(r"giant-sleep against giant lower adaptive Giant .* \S\d+\.\d+ .* the same sign unix", section)
    assert section.count("not measured here") == 8
    for variant in run.variants.all():
        variant.name = {"giant": "giant-up", "giant-sleep": "giant"}[variant.name]
        variant.save()
    assert re.search(r"giant against giant-up \+7\.\d+ % .* the other sign", _section(client, run))


PROFILE = """\
    max        total       count   avg     cnt_hold     cnt_lock name
      9           70     1000000     7     {unp:8}            1 ../kern/unp_lock_{strategy}.c:36 ({lock})
      9           70     1000000     7     {filedesc:8}            1 ../api/fdlock.c:49 (filedesc)
      9           70        1000     7            7            1 ../api/fdlock.c:49 (filedesc2)
      9           70        1000     7            0            0 ../kern/sleepq.c:49 (sleepq)
"""


def _profiled(boots: int, scatter: int, busy: int = 1) -> Run:
    """A run of unix-2006 whose sockets have less contention with finer locks, and whose descriptor table more; in every
    other boot the number of failed attempts is multiplied.
    """
    run = create_run(tests=["unix.mysql.8/host-host/ipv4"], boots=boots)
    run.plan = create_plan("name: unix-2006", name="unix-2006")
    run.save()
    costs = {"deferred": ("single", "unp", 900, 200), "direct": ("global", "unp_global_mtx", 100, 500)}
    for variant in run.variants.all():
        strategy, lock, unp, filedesc = costs[variant.name]
        variant.name = f"{strategy}-profiled"
        variant.save()
        for number, boot in enumerate(variant.boots.all()):
            more, times = number * scatter, busy if number % 2 else 1
            counts = {"unp": times * (unp + more), "filedesc": times * (filedesc + more)}
            text = PROFILE.format(strategy=strategy, lock=lock, **counts)
            name = f"boots/{boot.position:03d}-{variant.name}/counters-mutexprof.txt"
            create_artefact(run, name, text, ArtefactKind.COUNTERS, boot=boot)
    return run


def test_contention_moves_from_one_lock_to_another(client: Client) -> None:
    section = _contention(client, _profiled(boots=4, scatter=10))
    there = r"96.29.% 4.641.989 0.82.% 23.618"
    assert re.search(rf"UNIX-domain sockets {there} 80.99.% 915 18.21.% 115 the same sign descriptor", section)
    there = r"2.58.% 46.039 41.45.% 533.438"
    assert re.search(rf"descriptor table {there} 19.01.% 215 81.79.% 515 the same sign socket", section)
    assert re.search(r"sleeping \S 5.22.% 181.010 0.00.% 0 0.00.% 0 no attempt failed here process", section)
    assert re.search(r"process 0.93.% 120.264 51.49.% 1.661.766 \S \S no such lock here", section)


def test_boots_on_a_machine_that_is_busy_now_and_then_share_out_their_failures_alike(client: Client) -> None:
    section = _contention(client, _profiled(boots=4, scatter=10, busy=10))
    assert re.search(r"descriptor table .* 19.01.% 1.205 81.79.% 2.855 the same sign socket", section)


@pytest.mark.parametrize(
    ("boots", "scatter", "words"),
    [(4, 100_000, "no difference proven; the run could have seen "), (1, 0, "not enough data here")],
)
def test_contention_that_proves_nothing_is_labelled(client: Client, boots: int, scatter: int, words: str) -> None:
    section = _contention(client, _profiled(boots, scatter)).partition("descriptor table")[2]
    assert words in section.partition("socket buffers")[0]


def test_a_run_without_the_profiled_variants_has_the_published_numbers_alone(client: Client) -> None:
    run = create_run(tests=["unix.mysql.8/host-host/ipv4"])
    run.plan = create_plan("name: unix-2006", name="unix-2006")
    run.save()
    section = _contention(client, run)
    assert re.search(r"descriptor table 2.58.% 46.039 41.45.% 533.438 \S \S not measured here", section)


def test_other_plans_have_no_such_section(client: Client, run: Run) -> None:
    assert "Published results" not in page(client, f"/runs/{run.pk}/")


def test_every_published_effect_is_one_that_its_plan_measures() -> None:
    for name, published in yaml.safe_load(FIGURES.read_text(encoding="utf-8")).items():
        plan = read_plan((PLANS / f"{name}.yaml").read_text(encoding="utf-8"))
        assert plan.name == name
        variants = {variant.name for variant in plan.variants}
        for effect in published["effects"]:
            assert effect["variant"] in variants - {effect.get("against", plan.baseline)}
            assert effect.get("against", plan.baseline) in variants
            assert effect["test"] in {test.name for test in plan.tests}
            assert "simulated" not in effect or "simulated" in published
            assert isinstance(effect.get("percent"), int | float) or effect.get("sign") == "lower" or effect["was"] > 0
        if contention := published.get("contention"):
            assert {contention["before"], contention["after"]} <= variants
            profiled = [variant for variant in plan.variants if variant.tunables.get(PROFILES["mutexes"]) == "1"]
            assert {variant.name for variant in profiled} == {contention["before"], contention["after"]}
            assert all("-Dlock_profiling=true" in variant.build_options for variant in profiled)
        if simulated := published.get("simulated"):
            repeated = read_plan((PLANS / f"{simulated}.yaml").read_text(encoding="utf-8"))
            assert repeated.baseline == plan.baseline
            for effect in (effect for effect in published["effects"] if "simulated" in effect):
                assert effect["simulated"] in {test.name for test in repeated.tests}
                assert effect["variant"] in {variant.name for variant in repeated.variants}
