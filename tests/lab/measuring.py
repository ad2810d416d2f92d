# SPDX-License-Identifier: BSD-2-Clause
"""Samples of the play `measure`, as reported to the controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runners.ansible.driver import Listener, PlayResult

Sample = dict[str, Any]


def measured(
    play: Callable[..., PlayResult],
    *commands: Sequence[str],
    samples: int = 1,
    timeout: float = 60,
    order: Mapping[str, object] | None = None,
    **values: object,
) -> list[list[Sample]]:
    """Return the samples of each command; `order` has further keys of each measurement, and `values` those of the
    play.
    """
    measurements = [
        {"test": str(number), "argv": list(argv), "samples": samples, **(order or {})}
        for number, argv in enumerate(commands)
    ]
    reported: list[dict[str, Any]] = []
    play(
        "measure", measurements=measurements, timeout=timeout, listener=Listener(report=reported.append), **values
    ).require_ok()
    return [
        [entry["sample"] for entry in reported if entry["test"] == measurement["test"] and "sample" in entry]
        for measurement in measurements
    ]
