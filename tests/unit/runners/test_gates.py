# SPDX-License-Identifier: BSD-2-Clause
"""Each validity gate fires above its limit, has its measured value in the message, and is documented."""

from __future__ import annotations

from pathlib import Path

import pytest

from playbooks.module_utils.gates import BY_NAME, DEFAULT_LIMITS, GATES, Gauges, judge
from playbooks.module_utils.gauges import UNITS

DOCS = Path(__file__).parents[3] / "docs"
CALM: Gauges = {
    "seconds": 1.02, "steal": 0.0, "foreign": 0.1, "foreign_program": "cron", "interface_errors": 0,
    "slowdown": 0.02, "interface_drops": 0, "retransmits": 0, "pause_frames": 0, "frequency": 3000.0, "throttles": 0,
    "clocksource": "tsc", "congestion_control": "cubic",
}  # fmt: skip
DISTURBED: dict[str, tuple[Gauges, str]] = {
    "steal": ({"steal": 0.123}, "steal: in 1.0 s the hypervisor took 12.3 % of the CPUs' time (5 % allowed)"),
    "slowdown": (
        {"slowdown": 0.37},
        "slowdown: in 1.0 s the CPUs lost 37.0 % of the best speed that they had in this run (10 % allowed)",
    ),
    "foreign": (
        {"foreign": 0.93, "foreign_program": "cc1"},
        "foreign: in 1.0 s others used 0.93 CPUs, above all cc1 (0.5 allowed)",
    ),
    "clocksource": (
        {"clocksource": "hpet"},
        "clocksource: in 1.0 s the kernel's clock source was hpet instead of tsc",
    ),
    "congestion": (
        {"congestion_control": "bbr"},
        "congestion: in 1.0 s TCP's congestion control was bbr instead of cubic",
    ),
    "errors": (
        {"interface_errors": 2},
        "errors: in 1.0 s the data links counted 2 frames with errors (none allowed)",
    ),
    "drops": ({"interface_drops": 3}, "drops: in 1.0 s the data links dropped 3 frames (none allowed)"),
    "retransmits": ({"retransmits": 4}, "retransmits: in 1.0 s TCP sent 4 segments again (none allowed)"),
    "pauses": ({"pause_frames": 5}, "pauses: in 1.0 s the data links saw 5 pause frames (none allowed)"),
    "frequency": (
        {"frequency": 2400.0},
        "frequency: in 1.0 s the CPUs ran at 2400 MHz instead of 3000 (10 % allowed)",
    ),
    "throttles": (
        {"throttles": 1},
        "throttles: in 1.0 s the CPUs were too hot and slowed down 1 times (none allowed)",
    ),
}
EVERY_LIMIT = {gate.name: 0.1 if gate.name in ("frequency", "slowdown") else gate.limit or 0.0 for gate in GATES}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_gate_fires_only_above_its_limit_and_reports_the_value(name: str) -> None:
    changes, words = DISTURBED[name]
    assert judge({**CALM, **changes}, CALM, EVERY_LIMIT) == words
    assert judge(CALM, CALM, EVERY_LIMIT) == ""
    others = {gate: limit for gate, limit in EVERY_LIMIT.items() if gate != name}
    assert judge({**CALM, **changes}, CALM, others) == ""


def test_what_a_limit_allows_is_not_void() -> None:
    assert judge({**CALM, "steal": 0.05, "foreign": 0.5}, CALM, DEFAULT_LIMITS) == ""


def test_all_gates_that_fire_are_named() -> None:
    reason = judge({**CALM, "steal": 0.5, "foreign": 2.0}, CALM, DEFAULT_LIMITS)
    assert reason.startswith("steal: ")
    assert "; foreign: in 1.0 s others used 2.00 CPUs" in reason


def test_what_a_host_does_not_measure_fires_nothing() -> None:
    assert judge({"seconds": 1.0}, {}, EVERY_LIMIT) == ""
    assert judge({"clocksource": "hpet"}, {}, EVERY_LIMIT) == ""


def test_load_of_programs_that_have_ended_has_no_name() -> None:
    reason = judge({"seconds": 1.0, "foreign": 1.0}, {}, DEFAULT_LIMITS)
    assert "above all programs that have ended" in reason


def test_every_gate_has_a_gauge_and_every_gauge_and_gate_is_documented() -> None:
    gauges, gates = ((DOCS / name).read_text(encoding="utf-8") for name in ("reference/data.md", "howto/plans.md"))
    described = gauges[gauges.index("## Gauges") :]
    table = gates[gates.index("## Void samples") :]
    for gauge, unit in UNITS.items():
        assert f"`{gauge}`" in described
        assert f"| {unit}".rstrip() + " |" in described
    for gate in GATES:
        assert gate.gauge in UNITS
        (row,) = [line for line in table.splitlines() if line.startswith("| ") and f"`{gate.name}`" in line]
        default = "off" if gate.limit is None else f"{gate.limit:g}"
        assert f"| {default}" in row
