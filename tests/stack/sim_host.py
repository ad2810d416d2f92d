# SPDX-License-Identifier: BSD-2-Clause
"""Workloads on the simulated machine and on this one, and the costs that make the former like the latter."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.stack.topology import Installed

# Costs of an instruction in picoseconds, to find how the time of a workload depends on it.
COSTS = (0, 200)
WARM_UP = 0.002  # virtual seconds before simstack measures
TIMEOUT = 120

Setting = tuple[str, str]


class RunError(Exception):
    """A run failed; the text is its output."""


@dataclass(frozen=True)
class Load:
    """A workload, with its numbers of streams and CPUs, and its tunables."""

    workload: str
    cpus: int
    streams: int
    settings: tuple[Setting, ...] = ()

    def words(self) -> list[str]:
        """The tunables, as name=value."""
        return [f"{name}={value}" for name, value in self.settings]


class Machines:
    """simstack, and hostload on the first CPUs that this process may use."""

    def __init__(self, host: Installed, sim: Installed) -> None:
        self.host, self.sim = host.prefix / "bin", sim.prefix / "bin"
        self.cpus = sorted(os.sched_getaffinity(0))

    def measure(self, load: Load, seconds: float) -> float:
        """Units per second on this machine."""
        if load.cpus > len(self.cpus):
            raise RunError(f"{load.cpus} CPUs are wanted, and there are {len(self.cpus)}")
        cpus = ",".join(map(str, self.cpus[: load.cpus]))
        argv = ["taskset", "-c", cpus, str(self.host / "hostload"), load.workload, str(load.streams)]
        return _positive(float(_run([*argv, str(round(1000 * seconds)), *load.words()]).split()[0]))

    def predict(self, load: Load, machine: str, milliseconds: int = 10) -> float:
        """Units per virtual second on a simulated machine: the name of a preset, or a file."""
        argv = [str(self.sim / "simstack"), "--json", "--machine", machine, "--workload", load.workload]
        argv += ["--cpus", str(load.cpus), "--streams", str(load.streams), "--ms", str(milliseconds)]
        for word in load.words():
            argv += ["--set", word]
        return _positive(float(json.loads(_run(argv))["runs"][0]["rate"]))

    def calibrate(self, path: Path, loads: Sequence[Load], rounds: int, seconds: float) -> dict[str, float]:
        """Write the costs of this machine to a file; return the cost of an instruction in each workload, in
        picoseconds.

        hostcosts measures all other costs; that of an instruction is the median of the values that explain these loads'
        rates.
        """
        costs = _run([str(self.host / "hostcosts")])
        found = {}
        for load in loads:
            rate = statistics.median(self.measure(load, seconds) for _ in range(rounds))
            simulated = [self._with_instruction(costs, load, cost) for cost in COSTS]
            found[load.workload] = instruction_cost(1 / rate, simulated)
        cost = round(statistics.median(found.values()))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{costs}instruction {cost}\t# of {', '.join(found)}: the median\n", encoding="utf-8")
        return found

    def _with_instruction(self, costs: str, load: Load, cost: int) -> float:
        """Virtual seconds of a unit for a cost of an instruction."""
        with tempfile.NamedTemporaryFile("w", suffix=".machine", encoding="utf-8") as file:
            file.write(f"{costs}instruction {cost}\n")
            file.flush()
            return 1 / self.predict(load, file.name)


def instruction_cost(measured: float, simulated: Sequence[float]) -> float:
    """The cost of an instruction with which a unit takes the measured time, from its times at both of COSTS.

    On one CPU time is linear in it. At least 0, because less would compensate for other costs that are too high.
    """
    without, slope = simulated[0], (simulated[1] - simulated[0]) / (COSTS[1] - COSTS[0])
    return max(0.0, (measured - without) / slope)


def interface_settings(knob: str, value: str, load: Load) -> Iterable[Setting]:
    """A tunable, or that of each interface of a workload."""
    if "<name>" not in knob:
        return [(knob, value)]
    first = 0 if load.workload == "forward" else 1
    return [(knob.replace("<name>", f"mem{n}"), value) for n in range(first, load.streams + 1)]


def _positive(rate: float) -> float:
    """The same; a zero rate has no ratio."""
    if rate <= 0:
        raise RunError("nothing was moved")
    return rate


def _run(argv: Sequence[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired as why:
        raise RunError(f"no end in {TIMEOUT} s") from why
    if done.returncode != 0:
        raise RunError((done.stderr.strip() or f"{argv[0]}: status {done.returncode}").splitlines()[0])
    return done.stdout
