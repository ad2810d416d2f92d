# SPDX-License-Identifier: BSD-2-Clause
"""The samples of a bench of knobs: taken in rounds while the CPUs are quiet, stored in a file, compared in pairs."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from tests.stack.control import Control, Look
from tests.stack.knobs_page import Cell
from tests.stack.measures import Bench, Row
from tests.stack.strategies import Arm

Group = Sequence[Arm]  # that are compared with the first
FAILURES = 2  # failures of an arm after which it is given up


@dataclass
class Samples:
    """The results of a number of rounds: the rate of each arm, by round, and its errors.

    `looks` are the checks of the control around the counted samples, by round, too; `void` is the number of
    repetitions.
    """

    rates: dict[Arm, dict[int, float]] = field(default_factory=dict)
    failures: dict[Arm, list[str]] = field(default_factory=dict)
    looks: dict[Arm, dict[int, Look]] = field(default_factory=dict)
    void: int = 0

    def take(self, bench: Bench, control: Control, arm: Arm, turn: int) -> None:
        """Repeat a sample, unless it has failed too often."""
        if self._given_up(arm):
            return
        try:
            rate, look = self._quiet_rate(bench, control, arm.row())
        except (AssertionError, subprocess.TimeoutExpired) as why:
            last = str(why).strip().splitlines()[-1]
            self.failures.setdefault(arm, []).append(last)
            print(f"{arm.label or 'the default'} under {arm.workload}: {last}", file=sys.stderr)
            return
        self.rates.setdefault(arm, {})[turn] = rate
        self.looks.setdefault(arm, {})[turn] = look

    def _quiet_rate(self, bench: Bench, control: Control, row: Row) -> tuple[float, Look]:
        while True:
            sample, look = control.around(lambda: row.measure(bench, row, "stack"))
            assert sample.rate > 0, "nothing was moved"
            if control.is_quiet(look) or not control.waits():
                return sample.rate * row.scale, look
            self.void += 1

    def rounds(self) -> int:
        """Return how many rounds have begun."""
        return max((turn + 1 for rates in self.rates.values() for turn in rates), default=0)

    def has(self, arms: Group, turn: int) -> bool:
        """Return whether a round has all arms of a group that have not failed too often."""
        return all(turn in self.rates.get(arm, {}) or self._given_up(arm) for arm in arms)

    def drop(self, arms: Group, turn: int) -> None:
        """Delete a round's samples of a group, because compared samples are measured together."""
        for arm in arms:
            self.rates.get(arm, {}).pop(turn, None)
            self.looks.get(arm, {}).pop(turn, None)

    def _given_up(self, arm: Arm) -> bool:
        return len(self.failures.get(arm, [])) == FAILURES

    def pairs(self, default: Arm, arm: Arm) -> tuple[tuple[float, float], ...]:
        """The rates of two arms in the rounds in which both have one."""
        ours, theirs = self.rates.get(default, {}), self.rates.get(arm, {})
        return tuple((rate, theirs[turn]) for turn, rate in ours.items() if turn in theirs)


def missing(found: Sequence[Group], samples: Samples, rounds: int) -> list[tuple[int, Group]]:
    """The groups that are incomplete, round by round."""
    return [(turn, group) for turn in range(rounds) for group in found if not samples.has(group, turn)]


def measure_cells(bench: Bench, control: Control, found: Sequence[Group], samples: Samples, rounds: int) -> None:
    """All groups that are missing."""
    for turn, wanted in itertools.groupby(missing(found, samples, rounds), key=itemgetter(0)):
        print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
        for _, group in wanted:
            samples.drop(group, turn)
            for arm in random.sample(group, len(group)):
                samples.take(bench, control, arm, turn)


def cells(found: Sequence[Group], samples: Samples) -> list[Cell]:
    """The result, for the page."""
    return [
        Cell(str(arm.label), dict(arm.base), arm.workload, samples.pairs(default, arm))
        for default, *others in found
        for arm in others
    ]


def noise(samples: Sequence[Samples], control: Control) -> str:
    """How many samples were repeated, and how many count although the CPUs were busy, in words."""
    void = sum(those.void for those in samples)
    busy = sum(
        not control.is_quiet(look) for those in samples for looks in those.looks.values() for look in looks.values()
    )
    return f"{void} samples void, {busy} counted without quiet CPUs"


def document(samples: Samples) -> dict[str, object]:
    """Return all of it as JSON for a file."""
    arms = dict.fromkeys([*samples.rates, *samples.failures])
    return {
        "arms": [
            {
                "workload": arm.workload,
                "base": dict(arm.base),
                "label": arm.label,
                "setting": dict(arm.setting),
                "rates": samples.rates.get(arm, {}),
                "looks": samples.looks.get(arm, {}),
                "failures": samples.failures.get(arm, []),
            }
            for arm in arms
        ],
        "void": samples.void,
    }


def read(document: Mapping[str, Any]) -> Samples:
    """Load such a file."""
    samples = Samples(void=document["void"])
    for kept in document["arms"]:
        arm = Arm(kept["workload"], tuple(kept["base"].items()), kept["label"], tuple(kept["setting"].items()))
        samples.rates[arm] = {int(turn): rate for turn, rate in kept["rates"].items()}
        samples.looks[arm] = {int(turn): Look(*look) for turn, look in kept["looks"].items()}
        samples.failures[arm] = kept["failures"]
    return samples
