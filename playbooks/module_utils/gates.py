# SPDX-License-Identifier: BSD-2-Clause
"""Validity gates: what makes a sample void, the texts of the reasons, and how many samples are repeated.

A gate tests one gauge of a sample, which the host measured around it (module_utils/gauges.py). If it fires, the sample
is kept with the reason but enters no statistics, and another one is taken at once. So the host judges its samples
itself, by the limits of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Gauges = Mapping[str, float | str]
Limits = Mapping[str, float]
"""The limits by the name of a gate; a sample above one is void. Missing gates are off."""


def _itself(now: float | str, _: float | str) -> float:
    return float(now)


def _changed(now: float | str, first: float | str) -> float:
    return float(now != first)


def _shifted(now: float | str, first: float | str) -> float:
    return abs(float(now) / float(first) - 1) if float(first) else 0.0


@dataclass(frozen=True)
class Gate:
    """One rule.

    `value` computes the tested number from the gauge, and from the same gauge of the measurement's first sample.
    `limit` is the default of plans, None if the gate is off by default, and `why` the reason for it. `words` is the
    message, with {value}, the same as {percent}, {now}, {first} and {program}.
    """

    name: str
    gauge: str
    value: Callable[[float | str, float | str], float]
    limit: float | None
    words: str
    why: str


GATES = (
    Gate(
        "steal", "steal", _itself, 0.05,
        "the hypervisor took {percent:.1f} % of the CPUs' time",
        "more than the margin of equivalence, so that what it takes may be all of the difference",
    ),
    Gate(
        "slowdown", "slowdown", _itself, None,
        "the CPUs lost {percent:.1f} % of the best speed that they had in this run",
        "off: to try it keeps the run's CPUs at work for 0.05 s around each sample; 0.1 is right for a virtual machine",
    ),
    Gate(
        "foreign", "foreign", _itself, 0.5,
        "others used {value:.2f} CPUs, above all {program}",
        "a host has some tenths of a CPU of its own life; half a CPU is a program that has work",
    ),
    Gate(
        "clocksource", "clocksource", _changed, 0.0,
        "the kernel's clock source was {now} instead of {first}",
        "times of one clock are not times of the other, and reading it takes another time",
    ),
    Gate(
        "congestion", "congestion_control", _changed, 0.0,
        "TCP's congestion control was {now} instead of {first}",
        "another algorithm is another experiment",
    ),
    Gate(
        "errors", "interface_errors", _itself, 0.0,
        "the data links counted {value:.0f} frames with errors",
        "a good link has none",
    ),
    Gate(
        "drops", "interface_drops", _itself, None,
        "the data links dropped {value:.0f} frames",
        "off: a stream fills queues until they drop",
    ),
    Gate(
        "retransmits", "retransmits", _itself, None,
        "TCP sent {value:.0f} segments again",
        "off: with a stream it is how TCP finds the rate of the path",
    ),
    Gate(
        "pauses", "pause_frames", _itself, None,
        "the data links saw {value:.0f} pause frames",
        "off: a card sends them when its host is slower than the link",
    ),
    Gate(
        "frequency", "frequency", _shifted, None,
        "the CPUs ran at {now:.0f} MHz instead of {first:.0f}",
        "off: it is read at one moment, and with a governor that saves power it is another one each time",
    ),
    Gate(
        "throttles", "throttles", _itself, None,
        "the CPUs were too hot and slowed down {value:.0f} times",
        "off: some laptops do so all the time; 0 is right for a rack",
    ),
)  # fmt: skip
BY_NAME = {gate.name: gate for gate in GATES}
DEFAULT_LIMITS: Limits = {gate.name: gate.limit for gate in GATES if gate.limit is not None}
SHARES = ("steal", "slowdown", "frequency")
"""Gates whose limit is a share, for example 0.05 for 5 %."""


def judge(gauges: Gauges, first: Gauges, limits: Limits) -> str:
    """Returns why a sample is void, or an empty text; `first` are the gauges of the measurement's first sample.

    Some gates compare with `first`. A gauge that a host does not have fires no gate.
    """
    return "; ".join(_fired(gauges, first, limits))


def _fired(gauges: Gauges, first: Gauges, limits: Limits) -> list[str]:
    reasons = []
    for gate in GATES:
        limit, now = limits.get(gate.name), gauges.get(gate.gauge)
        if limit is None or now is None:
            continue
        before = first.get(gate.gauge, now)
        if (value := gate.value(now, before)) > limit:
            reasons.append(_reason(gate, value, limit, {"now": now, "first": before}, gauges))
    return reasons


def _reason(gate: Gate, value: float, limit: float, compared: Gauges, gauges: Gauges) -> str:
    program = gauges.get("foreign_program", "programs that have ended")
    seen = gate.words.format(value=value, percent=100 * value, program=program, **compared)
    text = f"{gate.name}: in {gauges.get('seconds', 0):.1f} s {seen}"
    if gate.value is _changed:
        return text
    allowed = f"{100 * limit:g} %" if gate.name in SHARES else f"{limit:g}"
    return f"{text} ({allowed if limit else 'none'} allowed)"


class Taking:
    """Counts the samples of one measurement: `discard` of warm-up, then `samples` that count.

    A warm-up sample is never void, because it enters no statistics. A failed sample is not void either: a gate excuses
    no failure. Each void sample is replaced by another one at the end, `allowed` of them at most.
    """

    def __init__(self, samples: int, discard: int, limits: Limits, allowed: int) -> None:
        self.left = discard + samples
        self.failed = False
        self._warm_up = discard
        self._limits = limits
        self._allowed = allowed
        self._first: Gauges | None = None

    def judge(self, sample: Mapping[str, Any]) -> str:
        """Returns why the last sample is void, or an empty text, and updates `left` and `failed`."""
        gauges = sample.get("gauges", {})
        self._first = gauges if self._first is None else self._first
        went_well = sample["rc"] == 0 and not sample["timed_out"]
        self.failed = self.failed or not went_well
        void = judge(gauges, self._first, self._limits) if went_well and not self._warm_up else ""
        self._warm_up = max(0, self._warm_up - 1)
        again = bool(void) and self._allowed > 0
        self._allowed -= again
        self.left -= not again
        return void
