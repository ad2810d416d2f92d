# SPDX-License-Identifier: BSD-2-Clause
"""iperf3, reading the JSON that `-J` prints at the end."""

import json
from collections.abc import Mapping
from typing import Any

from perfweb.runs.catalogue import Measure
from runners.tools import SERVER_PORTS, ToolError, Value, family_option, positive

# Also in the moment before it has noticed the end of the client before.
BUSY = "the server is busy running a test"


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    port = str(SERVER_PORTS["iperf3"])
    common = ["iperf3", family_option(address), "-J", "-c", address, "-p", port, "-t", str(seconds)]
    return [*common, "-P", measure.name.removeprefix("iperf3.")]


def parse(output: str) -> list[Value]:
    """What the receiver got in bits/s."""
    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        raise ToolError("iperf3 printed no JSON") from None
    if not isinstance(document, dict):
        raise ToolError("iperf3 printed JSON that is no report")
    return values(document)


def values(document: Mapping[str, Any]) -> list[Value]:
    """What a report says the receiver got in bits/s.

    iperf3 3.12 ends with status 0 even when it could not connect, so "error" is looked at first.
    """
    if document.get("error"):
        raise ToolError(f"iperf3 says: {str(document['error'])[:200]}")
    end = document.get("end")
    received = end.get("sum_received") if isinstance(end, dict) else None
    if not isinstance(received, dict):
        raise ToolError("iperf3 printed no sum_received")
    rate = positive(received.get("bits_per_second"), "sum_received.bits_per_second")
    return [Value("throughput", rate, "bits/s", "higher")]
