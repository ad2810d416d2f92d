# SPDX-License-Identifier: BSD-2-Clause
"""A run that stops when it is decided, on a simulated lab: its measurements, its savings, and its messages."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from perfweb.measuring.planner import PlannedBoot, PlannedMeasurement, plan_boots
from perfweb.runs import progress
from perfweb.runs.invariants import violations
from perfweb.runs.models import Boot, MeasurementState, Run, Variant
from perfweb.runs.planfile import PlanSpec, read_plan
from runners import execute
from runners.boots import Bench
from runners.stopping import decisions, settled
from tests.factories import (
    create_boot,
    create_failed_measurement,
    create_measurement,
    create_queued_run,
    create_variants,
)

pytestmark = pytest.mark.django_db
PLAN = """\
name: two
baseline: deferred
variants: [{name: deferred, target: linux}, {name: direct, target: linux}]
tests: [tcp.rr/host-host/ipv4, udp.rr/host-host/ipv4, tcpconnect/host-host/ipv4]
stop: decided
boots: 10
"""
RR, UDP, CONNECT = "tcp.rr/host-host/ipv4", "udp.rr/host-host/ipv4", "tcpconnect/host-host/ipv4"


class Lab:
    """Delivers samples without measuring: `gains` are those of direct by test, None if it fails."""

    def __init__(self, gains: dict[str, float | None], scatter: float = 0.005) -> None:
        self.gains = gains
        self.scatter = scatter
        self.random = random.Random(1)
        self.booted: list[PlannedBoot] = []

    def run_boot(
        self, bench: Bench, variant: Variant, planned: PlannedBoot, missing: Sequence[PlannedMeasurement]
    ) -> bool:
        self.booted.append(planned)
        place = planned.topology, planned.server, planned.position
        boot = create_boot(bench.run, variant, *place, sentinel=planned.sentinel)
        for measurement in missing:
            gain = self.gains[measurement.test.name] if variant.name == "direct" else 1.0
            if gain is None:
                create_failed_measurement(boot, measurement.test)
                continue
            mean = gain * self.random.gauss(1, self.scatter)
            create_measurement(boot, measurement.test, measurement.samples, 1, mean, 0.002, self.random)
        return True


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Run, list[str]]]:
    """Measure a run on a simulated lab; return it with its messages."""

    def go(lab: Lab, text: str = PLAN, run: Run | None = None) -> tuple[Run, list[str]]:
        monkeypatch.setattr(execute, "run_boot", lab.run_boot)
        if run is None:
            run = create_queued_run()
            create_variants(run)
        progress.begin(run.pk)
        variants = {variant.name: variant for variant in run.variants.all()}
        beat = cast("Any", SimpleNamespace(check=lambda: None))
        bench = Bench(run, read_plan(text), cast("Any", None), {})
        return run, execute._measure(bench, variants, beat)

    return go


def blocks(lab: Lab, server: str) -> int:
    return len({boot.block for boot in lab.booted if boot.server == server})


def test_each_group_ends_when_all_its_comparisons_are_decided(measure: Callable[..., tuple[Run, list[str]]]) -> None:
    lab = Lab({RR: 1.3, UDP: 1.0, CONNECT: 0.7})
    run, messages = measure(lab)
    netperf, connect = blocks(lab, "netserver"), blocks(lab, "tcpconnect")
    assert 3 <= connect < netperf < 10
    assert len(lab.booted) == 2 * (netperf + connect)
    assert messages[0].startswith(f"host-host, netserver: decided after {netperf} of 10 boots of each variant, ")
    assert messages[1].startswith(f"host-host, tcpconnect: decided after {connect} of 10 boots of each variant, ")
    assert messages[0].endswith(" min saved")
    first, second = [event.values for event in progress.progress_since(run.pk) if event.name == "decided"][-2:]
    assert first["verdicts"] == {f"direct {RR}": "faster", f"direct {UDP}": "equivalent"}
    assert second["verdicts"] == {f"direct {CONNECT}": "slower"}
    shares = [
        cast("float", event.values["fraction"]) for event in progress.progress_since(run.pk) if event.name == "eta"
    ]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_run_goes_on_to_its_maximum_while_something_is_open(measure: Callable[..., tuple[Run, list[str]]]) -> None:
    lab = Lab({RR: 2.0, UDP: 1.0, CONNECT: 3.0}, scatter=0.06)
    _, messages = measure(lab)
    assert blocks(lab, "netserver") == 10
    assert [words.partition(":")[0] for words in messages] == ["host-host, tcpconnect"]


def test_a_plan_that_does_not_ask_measures_everything(measure: Callable[..., tuple[Run, list[str]]]) -> None:
    lab = Lab({RR: 2, UDP: 2, CONNECT: 2})
    _, messages = measure(lab, PLAN.replace("stop: decided", "samples: 20"))
    assert (len(lab.booted), messages) == (40, [])


def test_what_always_fails_is_not_waited_for(measure: Callable[..., tuple[Run, list[str]]]) -> None:
    lab = Lab({RR: 1.3, UDP: None, CONNECT: None})
    run, _ = measure(lab)
    assert blocks(lab, "netserver") < 10
    assert blocks(lab, "tcpconnect") == 3
    decided = [event.values["verdicts"] for event in progress.progress_since(run.pk) if event.name == "decided"]
    assert decided[-2] == {f"direct {RR}": "faster", f"direct {UDP}": "not measured"}


def test_a_resumed_run_decides_the_same_again(measure: Callable[..., tuple[Run, list[str]]]) -> None:
    lab = Lab({RR: 1.3, UDP: 1.0, CONNECT: 0.7})
    run, messages = measure(lab)
    booted = len(lab.booted)
    assert [words.partition(",")[0:2] for words in measure(lab, run=run)[1]] == [
        words.partition(",")[0:2] for words in messages
    ]
    assert len(lab.booted) == booted


@pytest.mark.parametrize("every", [2, 3, 50])
def test_a_sentinel_decides_nothing_and_boots_once_more_when_all_is_decided(
    measure: Callable[..., tuple[Run, list[str]]], every: int
) -> None:
    lab = Lab({RR: 1.3, UDP: 1.3, CONNECT: 0.7})
    measure(lab)
    watched = Lab({RR: 1.3, UDP: 1.3, CONNECT: 0.7})
    text = f"{PLAN}sentinel: {{variant: direct, every: {every}}}\n"
    run, _ = measure(watched, text)
    for server in ("netserver", "tcpconnect"):
        kinds = "".join("S" if boot.sentinel else "b" for boot in watched.booted if boot.server == server)
        assert re.fullmatch(rf"(Sb{{{every}}})*(Sb{{1,{every}}})S", kinds)
        assert len(kinds.replace("S", "")) < 20
    assert Boot.objects.filter(run=run, sentinel=True).count() == sum(boot.sentinel for boot in watched.booted)
    booted = len(watched.booted)
    measure(watched, text, run)
    assert len(watched.booted) == booted, "a run that goes on boots none again"


def test_a_run_goes_on_with_the_boots_of_the_sentinel_that_are_missing(
    measure: Callable[..., tuple[Run, list[str]]],
) -> None:
    text = PLAN.replace("stop: decided\nboots: 10", "samples: 4\nboots: 4\nsentinel: 4")
    run, _ = measure(Lab({RR: 1.3, UDP: 1.3, CONNECT: 0.7}), text)
    Boot.objects.filter(run=run, position__in=[0, 7, 8]).delete()
    later = Lab({RR: 1.3, UDP: 1.3, CONNECT: 0.7})
    measure(later, text, run)
    assert [(boot.position, boot.sentinel) for boot in later.booted] == [(0, True), (7, False), (8, False)]
    assert violations() == []


def plan_of(text: str = PLAN) -> PlanSpec:
    return read_plan(text)


def test_only_counted_samples_of_earlier_blocks_decide(measure: Callable[..., tuple[Run, list[str]]]) -> None:
    run, _ = measure(Lab({RR: 1.3, UDP: 1.3, CONNECT: 1.3}))
    planned = plan_boots(plan_of(), run.seed)
    following = next(boot for boot in planned if boot.block == 4)
    assert settled(run, plan_of(), planned, following) is not None
    assert settled(run, plan_of(), planned, planned[planned.index(following) + 1]) is None, "in the middle of a block"
    assert settled(run, plan_of(), planned, planned[0]) is None
    measured = [boot for boot in planned if boot.block < 4 and boot.server == "netserver"]
    assert all(found and found.decided for found in decisions(run, plan_of(), measured).values())
    for boot in Boot.objects.filter(run=run):
        boot.measurements.update(state=MeasurementState.VOID, reason="disturbed")
    assert set(decisions(run, plan_of(), measured).values()) == {None}
