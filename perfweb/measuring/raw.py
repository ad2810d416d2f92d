# SPDX-License-Identifier: BSD-2-Clause
"""A measurement as the host and the tool delivered it: from the play through the spool to `record.measurement`.

The spool stores it as JSON, so files of other versions of this program must be readable, too.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from django.utils import timezone

LATEST = 253402300799.0
"""The end of the year 9999, in seconds since 1970, which is datetime's max."""


@dataclass(frozen=True)
class RawSample:
    """One call of a tool, as the module `measure` reports it.

    `rc` is the exit status, negative for the number of a signal; `started` is in seconds since 1970; `refused` counts
    refusals by a busy server before; `gauges` are by the names in gauges.UNITS; `void` is the reason why the sample is
    void. `malformed` is the JSON of an invalid sample; the other fields are then empty.
    """

    rc: int = 0
    stdout: str = ""
    stderr: str = ""
    started: float = 0.0
    seconds: float = 0.0
    timed_out: bool = False
    refused: int = 0
    void: str = ""
    gauges: Mapping[str, object] = field(default_factory=dict)
    malformed: str = ""

    @classmethod
    def read(cls, sent: object) -> RawSample:
        """Check a sample from a host. Never raises: an invalid sample becomes a malformed one."""
        names = {one.name for one in fields(cls)}
        known = {name: value for name, value in sent.items() if name in names} if isinstance(sent, dict) else {}
        if known.keys() >= {"rc", "stdout", "stderr", "started", "seconds", "timed_out"}:
            sample = cls(**known)
            if sample._is_well_formed():
                return sample
        return cls(malformed=_as_json(sent))

    def _is_well_formed(self) -> bool:
        whole = all(type(number) is int for number in (self.rc, self.refused))
        texts = all(isinstance(text, str) for text in (self.stdout, self.stderr, self.void, self.malformed))
        times = _between(self.started, LATEST) and _between(self.seconds, LATEST)
        return whole and texts and times and isinstance(self.timed_out, bool) and isinstance(self.gauges, dict)


def _as_json(sent: object) -> str:
    try:
        return json.dumps(sent, default=repr)
    except RecursionError:
        return "nested too deep"


def _between(value: object, most: float) -> bool:
    number = type(value) in {int, float} and 0 <= value <= most  # type: ignore[operator]
    return number and math.isfinite(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RawMeasurement:
    """A test on the boot with this key: the command and its samples, of which the first `discard` are warm-up.

    `pinning` has the CPUs by role, `reason` is the reason why samples are missing, `time` is in seconds since 1970.
    """

    boot: int
    test: str
    discard: int
    argv: Sequence[str]
    pinning: Mapping[str, str]
    samples: Sequence[RawSample] = ()
    reason: str = ""
    environment: Mapping[str, object] = field(default_factory=lambda: {"controller_load": os.getloadavg()})
    time: float = field(default_factory=lambda: timezone.now().timestamp())

    def document(self) -> dict[str, Any]:
        """Return the JSON object that `read` takes."""
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> RawMeasurement:
        """Return the measurement of a JSON object. Raises KeyError, TypeError or ValueError for another object."""
        return cls(
            boot=int(document["boot"]),
            test=str(document["test"]),
            discard=int(document["discard"]),
            argv=[str(word) for word in document["argv"]],
            pinning=dict(document["pinning"]),
            samples=[RawSample.read(sample) for sample in document["samples"]],
            reason=str(document["reason"]),
            environment=dict(document["environment"]),
            time=float(document["time"]),
        )
