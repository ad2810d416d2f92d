# SPDX-License-Identifier: BSD-2-Clause
"""A kernel that counts (docs/explanation/counted.md): a boot with one seed runs all loads, a sample of each."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfweb.counted import costs
from perfweb.counted.costs import CostError
from perfweb.counted.rows import KINDS
from perfweb.jsontext import JsonError, read_json
from perfweb.measuring.raw import RawSample
from perfweb.measuring.tools.base import ToolError, Value
from perfweb.runs.catalogue import Measure


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    """A boot, by the programs that are installed with a kernel (runners/counted/sample.py)."""
    return ["env", f"PYTHONPATH={prefix}/lane", "python3", "-B", "-m", "runners.counted.sample", prefix]


def booting(seed: int) -> list[str]:
    """Return the rest of a command: the seed of what the guest's kernel has as random numbers."""
    return ["--seed", str(seed)]


def failure(sample: RawSample) -> str:
    """Return why a kernel did not run its loads: the last line that its boot printed; empty if it did."""
    if sample.malformed:
        return f"its host sent what is no sample: {sample.malformed[:200]}"
    if sample.rc == 0 and not sample.timed_out:
        return ""
    last = sample.stderr.strip().rsplit("\n", 1)[-1][:500]
    return last or ("it did not end in time" if sample.timed_out else f"status {sample.rc}")


def by_load(sample: RawSample, tests: Sequence[str]) -> Iterator[RawSample]:
    """Return the sample of each test: that part of the output which its load has, none if there is no such part."""
    try:
        loads = read_json(sample.stdout)
    except JsonError:
        loads = {}
    for test in tests:
        found = loads.get(test) if isinstance(loads, dict) else None
        yield replace(sample, stdout=json.dumps(found) if found is not None else "", stderr="")


def parse(output: str) -> list[Value]:
    """What one unit of a load costs in the window with the fewest instructions, of each kind that is not zero."""
    try:
        found = costs.read(read_json(output))
    except JsonError as error:
        raise ToolError(f"the boot printed no costs of this load, but a document that {error}"[:200]) from None
    except CostError as error:
        raise ToolError(f"the load {error}"[:200]) from None
    return [Value(kind, number, KINDS[kind], "lower") for kind, number in found.lowest._asdict().items() if number]
