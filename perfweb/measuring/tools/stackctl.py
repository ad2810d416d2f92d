# SPDX-License-Identifier: BSD-2-Clause
"""stackctl, which is part of the stack: `top` reports the work of the receive threads in an interval, on their own
host.
"""

import re

from perfweb.measuring.tools.base import ToolError, Value, positive
from perfweb.runs.catalogue import Measure

_IDLE = re.compile(r"^receive threads: \d+, (?P<idle>\S+) % idle$", re.ASCII | re.MULTILINE)
_RATE = re.compile(r"^received: (?P<rate>\S+) kpps$", re.ASCII | re.MULTILINE)
_CPU = re.compile(r"^CPU time: (?P<cpu>\S+) ns a packet$", re.ASCII | re.MULTILINE)
_MISSES = re.compile(r"^cache misses: (?P<misses>[\d.]+) a packet", re.ASCII | re.MULTILINE)


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    return [f"{prefix}/bin/stackctl", "top", "-b", "-n", "1", "-d", str(seconds)]


def parse(output: str) -> list[Value]:
    """CPU time of a packet in the receive threads, their idle time in percent, packets/s, and misses of the cache where
    the CPU counts them.

    Without idle time there is no sample, because the offered load exceeds what can be received.
    """
    cpu, idle, rate, misses = (pattern.search(output) for pattern in (_CPU, _IDLE, _RATE, _MISSES))
    if cpu is None or idle is None or rate is None:
        raise ToolError("stackctl top printed no receive threads or no packets")
    values = [
        Value("cpu", positive(cpu["cpu"], "CPU time"), "ns", "lower"),
        Value("idle", positive(idle["idle"], "idle time"), "%", "higher"),
        Value("packets", 1000 * positive(rate["rate"], "rate"), "packets/s", "higher"),
    ]
    if misses:
        values.append(Value("misses", positive(misses["misses"], "cache misses"), "misses/packet", "lower"))
    return values
