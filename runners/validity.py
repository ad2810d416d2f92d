# SPDX-License-Identifier: BSD-2-Clause
"""The samples of one measurement as they are taken, and how many more are, because some are void."""

from collections.abc import Mapping, Sequence
from typing import Any

from perfweb.runs.gates import Limits, judge
from runners.planner import PlannedMeasurement

Output = Mapping[str, Any]
"""What the play `measure` hands back of a sample."""


class Taken:
    """All samples of one measurement in the order in which they were taken, and of each why it is void.

    Warm-up is never void, because it enters no statistics anyhow, and neither is what failed: a gate excuses nothing.
    For each void sample another one is taken at the end, `allowed` of them at most.
    """

    def __init__(self, planned: PlannedMeasurement, limits: Limits, allowed: int) -> None:
        self.outputs: list[Output] = []
        self._planned = planned
        self._limits = limits
        self._left = allowed
        self._wanted = planned.discard + planned.samples

    def wanted(self) -> int:
        """How many samples to take now; 0 when the measurement is done."""
        return self._wanted

    def add(self, outputs: Sequence[Output]) -> None:
        """Keeps the samples that were wanted, and wants as many again as are void and still allowed."""
        known = len(self.outputs)
        self.outputs += outputs
        self._wanted = min(self._left, sum(map(bool, self.voids()[known:])))
        self._left -= self._wanted

    def voids(self) -> list[str]:
        """For each sample why it is void, or an empty text."""
        reasons = judge([output.get("gauges", {}) for output in self.outputs], self._limits)
        return [
            reason if index >= self._planned.discard and _went_well(output) else ""
            for index, (output, reason) in enumerate(zip(self.outputs, reasons, strict=True))
        ]


def _went_well(output: Output) -> bool:
    return output["rc"] == 0 and not output["timed_out"]
