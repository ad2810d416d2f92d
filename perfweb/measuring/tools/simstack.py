# SPDX-License-Identifier: BSD-2-Clause
"""simstack, part of a build for the simulated machine: each sample boots the stack (docs/explanation/simulator.md)."""

from collections.abc import Mapping

from perfweb.jsontext import JsonError, read_json
from perfweb.measuring.tools.base import ToolError, Value, json_positive
from perfweb.runs.catalogue import Measure

VIRTUAL_MS = 10
"""Virtual milliseconds that are simulated for each second of a plan's sample."""

# The result for each unit of a workload: metric, unit, and factor.
_RATES = {
    "kilobytes/s": ("throughput", "bits/s", 8000),
    "transactions/s": ("transactions", "transactions/s", 1),
    "packets/s": ("packets", "packets/s", 1),
}
MACHINE = "sim.machine"
_COSTS = ("instructions", "blocks", "atomics", "lines")


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:  # noqa: ARG001
    """A measure is named after its workload, the number of virtual CPUs, and the cost, if it is about one:
    simulated.tcp.8, simulated.tcp.1.blocks.
    """
    workload, cpus = measure.name.split(".")[1:3]
    machine = ["--workload", workload, "--cpus", cpus, "--ms", str(VIRTUAL_MS * seconds)]
    return [f"{prefix}/bin/simstack", "--json", *machine]


def booting(tunables: Mapping[str, str], seed: int) -> list[str]:
    """Return the rest of a command: the tunables of the stack, and the seed of the simulation's random choices.

    The tunable of the simulated machine is not one of the stack, so it becomes an option of its own.
    """
    machine = [word for name, value in tunables.items() if name == MACHINE for word in ("--machine", value)]
    settings = [word for name, value in tunables.items() if name != MACHINE for word in ("--set", f"{name}={value}")]
    return ["--seed", str(seed), *machine, *settings]


def parse(output: str) -> list[Value]:
    """The rate in virtual time, and the cost of each unit: instructions, blocks, atomic operations, lines fetched."""
    try:
        report = read_json(output)
        (run,) = report["runs"]
        metric, unit, factor = _RATES[report["unit"]]
        values = [Value(metric, factor * json_positive(run["rate"], "rate"), unit, "higher")]
        each = report["unit"].removesuffix("s/s")
        # A cost of zero, such as lines on one CPU, is no sample, because nothing can be compared with zero. Nor is a
        # cost that an older simstack does not report.
        costs = {name: json_positive(run[name], name) for name in _COSTS if run.get(name, 0) != 0}
    except JsonError as error:
        raise ToolError(f"simstack printed no result, but a document that {error}"[:200]) from None
    except LookupError as error:
        raise ToolError(f"simstack printed no result: it lacks {error}"[:200]) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise ToolError(f"simstack printed no result: {error}"[:200]) from None
    return values + [Value(name, cost, f"{name}/{each}", "lower") for name, cost in costs.items()]
