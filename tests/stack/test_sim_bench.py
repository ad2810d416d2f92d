# SPDX-License-Identifier: BSD-2-Clause
"""The bench of the simulated machine: the costs of this one, its comparisons, and the judgement of a prediction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack import sim, sim_page
from tests.stack.sim_host import Load, Machines, RunError, instruction_cost
from tests.stack.sim_page import Validated
from tests.stack.strategies import Known
from tests.stack.topology import Installed

CHOICES = {"net.inet.tcp.input": ("giant", "pcbinfo"), "unix.locking": ("giant", "pair")}
STACK = Known(CHOICES, {"net.inet.tcp.input": "pcbinfo", "unix.locking": "pair", "if.<name>.lro": "1"})
NOISY = ((100.0, 50.0), (100.0, 200.0), (100.0, 90.0))
STEADY = ((100.0, 90.0), (100.0, 91.0), (101.0, 91.0))


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """This machine and the simulated one."""
    builds = Installed(), Installed("sim")
    yield Machines(*builds)
    for build in builds:
        build.remove()


def test_what_a_calibration_writes_is_a_machine(machines: Machines, tmp_path: Path) -> None:
    file = tmp_path / "new" / "host.machine"
    found = machines.calibrate(file, [Load("unix", 1, 1)], 1, 0.02)
    costs = dict(re.findall(r"^(\w+) (\d+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    assert int(costs["cpus"]) == len(machines.cpus)
    assert int(costs["instruction"]) == round(found["unix"])
    assert machines.predict(Load("unix", 2, 2), str(file), 1) > 0


def test_a_tunable_that_is_refused_is_explained_by_both(machines: Machines) -> None:
    load = Load("unix", 1, 1, (("net.isr.dispatch", "never"),))
    with pytest.raises(RunError, match=r"^simstack: net.isr.dispatch=never: "):
        machines.predict(load, "generic")
    with pytest.raises(RunError, match=r"^hostload: net.isr.dispatch=never: "):
        machines.measure(load, 0.01)


def test_an_instruction_costs_what_explains_the_time_of_a_unit() -> None:
    assert instruction_cost(5e-6, [3e-6, 4e-6]) == pytest.approx(400)
    assert instruction_cost(2e-6, [3e-6, 4e-6]) == 0


def test_values_are_compared_where_both_machines_have_a_workload() -> None:
    found = {(arm.label, arm.load.workload, arm.load.cpus) for arm in sim.arms(STACK, ["tcp.input", "unix.lock"])}
    assert found == {
        ("`net.inet.tcp.input=giant`", "tcp", 1),
        ("`net.inet.tcp.input=giant`", "tcp", 2),
        ("`unix.locking=giant`", "unix", 1),
        ("`unix.locking=giant`", "unix", 2),
    }


def test_a_tunable_of_interfaces_is_set_for_those_of_all_streams() -> None:
    loads = {arm.load.cpus: arm.load.settings for arm in sim.arms(STACK, ["lro"])}
    assert loads == {1: (("if.mem1.lro", "0"),), 2: (("if.mem1.lro", "0"), ("if.mem2.lro", "0"))}


@pytest.mark.parametrize(
    ("predicted", "verdict"), [(-9.5, "agrees"), (-40.0, "sign only"), (3.0, "**disagrees**"), (0.0, "**disagrees**")]
)
def test_a_prediction_is_judged_by_the_interval(predicted: float, verdict: str) -> None:
    assert Validated("`k=v`", "tcp", 1, predicted, STEADY, "").verdict() == verdict


def test_nothing_agrees_with_noise() -> None:
    assert Validated("`k=v`", "tcp", 1, -4.0, NOISY, "").verdict() == "too noisy"


def test_the_page_has_what_could_not_be_compared_and_where_rungs_cross() -> None:
    rows = [
        Validated("`a=1`", "tcp", 1, -40.0, STEADY, ""),
        Validated("`b=1`", "tcp", 2, None, (), "simulated: stack: b: no"),
    ]
    rungs = {
        "exclusive": dict.fromkeys(sim_page.LADDER_CPUS, 1000000.0),
        "shared-socket": {cpus: 5e5 * cpus for cpus in sim_page.LADDER_CPUS},
    }
    rates = [(Load("tcp", 1, 1), 120.0, [100.0])]
    text = sim_page.page("Measured.", {"tcp": 900.0}, rates, rows, [("x", "-6 % (2025)", "generic", -3.0)], rungs, "")
    assert "| `a=1` | `tcp` | 1 | -40.0 | " in text
    assert "| `b=1` | `tcp` | 2 | simulated: stack: b: no | |  |" in text
    assert "Of 1 changes 0 agree" in text
    assert "| `tcp` | 1 | 120 | 100 kilobytes/s | +20 |" in text
    assert "| x | -6 % (2025) | generic | -3.0 | as published |" in text
    assert "`shared-socket` is better than `exclusive` with 4 CPUs" in text
