# SPDX-License-Identifier: BSD-2-Clause
"""The accuracy of the simulated machine: its predictions compared with this machine and with published results.

`./dev bench sim [--quick] [--write] [KNOB ...]` measures all costs on this machine (var/bench/host.machine, for
simstack --machine). With them it predicts the effect of each strategy of dispatch and locking on one CPU and on two,
and measures it, with the same workloads in both. Then it predicts published results with the presets, and four ways to
lock TCP's input on up to 64 CPUs, with the Universal Scalability Law of each. --write puts all tables into
docs/measured/simulator.md. Nothing is tuned to the results: parameters come from their own measurements, or from
presets.c.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.stack import sim_page
from tests.stack.machine import here_and_now
from tests.stack.races import DOCUMENT, replace_between
from tests.stack.results import BENCH, keep
from tests.stack.sim_host import WARM_UP, Load, Machines, RunError, interface_settings
from tests.stack.sim_page import LADDER, PUBLISHED, Validated
from tests.stack.strategies import STRATEGIES, Known, known
from tests.stack.topology import Installed, Topology

BEGIN, END = "<!-- validation: ./dev bench sim --write -->", "<!-- end of validation -->"
HOST = BENCH / "host.machine"
CPUS = (1, 2)
SPEED_MS = 200  # virtual
SHAPE_MS = 400  # virtual, some quanta of the machines that have long ones
# The workloads of the bench of knobs that simstack has, too.
WORKLOADS = {
    "TCP 1": "tcp",
    "TCP 4": "tcp",
    "RR 16": "tcp",
    "CRR 4": "tcp",
    "forward": "forward",
    "UNIX": "unix",
    "UNIX 1:1": "unix",
}
# Its workloads for these have no equivalent in simstack.
LEFT_OUT = {
    "net.prefetch": "packets are never out of the caches of the simulated machine",
    "fd.lock": "the workloads call sockets, and have no descriptors",
    "machine.sched": "threads of the simulated machine have one priority",
}


@dataclass(frozen=True)
class Arm:
    """A comparison with a default: both loads, and the name of the difference in the table."""

    default: Load
    load: Load
    label: str


@dataclass
class Rates:
    """The measurements, by load and round, and their errors."""

    measured: dict[Load, dict[int, float]] = field(default_factory=dict)
    predicted: dict[Load, float] = field(default_factory=dict)
    failures: dict[Load, str] = field(default_factory=dict)

    def pairs(self, arm: Arm) -> tuple[tuple[float, float], ...]:
        """The rates of the default and the other, in the rounds in which both were measured."""
        ours, theirs = self.measured.get(arm.default, {}), self.measured.get(arm.load, {})
        return tuple((rate, theirs[turn]) for turn, rate in ours.items() if turn in theirs)


def arms(stack: Known, words: Sequence[str] = ()) -> list[Arm]:
    """Every value of every strategy, under each workload of both machines, on one CPU and on two."""
    found: dict[tuple[Load, Load], Arm] = {}
    for strategy in STRATEGIES:
        if strategy.knob in LEFT_OUT or (words and not any(word in strategy.knob for word in words)):
            continue
        base = tuple(strategy.base.items())
        beside = "".join(f", beside `{name}={value}`" for name, value in base)
        for workload in dict.fromkeys(WORKLOADS[name] for name in strategy.workloads if name in WORKLOADS):
            for value in stack.values(strategy):
                for cpus in CPUS:
                    default = Load(workload, cpus, cpus, base)
                    setting = tuple(interface_settings(strategy.knob, value, default))
                    load = Load(workload, cpus, cpus, (*base, *setting))
                    found[default, load] = Arm(default, load, f"`{strategy.knob}={value}`{beside}")
    return list(found.values())


def loads_of(found: Sequence[Arm]) -> list[Load]:
    """All loads to run, each once."""
    return list(dict.fromkeys(load for arm in found for load in (arm.default, arm.load)))


def predict(machines: Machines, loads: Sequence[Load], rates: Rates) -> None:
    """Simulate them with the costs of this machine."""
    for load in loads:
        try:
            rates.predicted[load] = machines.predict(load, str(HOST))
        except RunError as why:
            rates.failures[load] = f"simulated: {why}"


def measure(machines: Machines, loads: Sequence[Load], rounds: int, seconds: float, rates: Rates) -> None:
    """Measure those that could be simulated, in another order in each round."""
    shuffle = random.Random(1)
    for turn in range(rounds):
        print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
        for load in shuffle.sample(loads, len(loads)):
            if load in rates.failures:
                continue
            try:
                rates.measured.setdefault(load, {})[turn] = machines.measure(load, seconds)
            except RunError as why:
                rates.failures[load] = f"measured: {why}"


def validated(found: Sequence[Arm], rates: Rates) -> list[Validated]:
    """The results of each."""
    return [
        Validated(
            arm.label,
            arm.load.workload,
            arm.load.cpus,
            None if failed else 100 * (rates.predicted[arm.load] / rates.predicted[arm.default] - 1),
            rates.pairs(arm),
            failed,
        )
        for arm in found
        for failed in [rates.failures.get(arm.load) or rates.failures.get(arm.default) or ""]
    ]


def speed(machines: Machines) -> str:
    """Virtual packets per real second."""
    words = []
    for cpus in (1, 4, 16):
        start = time.monotonic()
        rate = machines.predict(Load("forward", cpus, cpus), "generic", SPEED_MS)
        packets = rate * (SPEED_MS / 1000 + WARM_UP)
        words.append(f"{packets / (time.monotonic() - start):.0f} on {cpus}")
    return f"Virtual packets simulated per real second, by number of virtual CPUs: {', '.join(words)}."


def ladder(machines: Machines) -> dict[str, dict[int, float]]:
    """The rate of each rung by number of CPUs."""
    return {
        rung: {cpus: machines.predict(sim_page.rung_load(rung, cpus), "generic", 5) for cpus in sim_page.LADDER_CPUS}
        for rung in LADDER
    }


def published(machines: Machines) -> list[tuple[str, str, str, float]]:
    """The prediction of a preset for published results: source, subject, the machine, and a change in percent."""
    return [
        (shape.title, shape.published, shape.machine, 100 * (rates[1] / rates[0] - 1))
        for shape in PUBLISHED
        for rates in [[machines.predict(load, shape.machine, SHAPE_MS) for load in (shape.before, shape.after)]]
    ]


def defaults(found: Sequence[Arm], rates: Rates) -> list[tuple[Load, float, list[float]]]:
    """Predicted and measured rates of the defaults themselves."""
    plain = dict.fromkeys(arm.default for arm in found if not arm.default.settings)
    return [
        (load, rates.predicted[load], list(rates.measured[load].values())) for load in plain if load in rates.measured
    ]


def bench(machines: Machines, stack: Known, chosen: argparse.Namespace) -> str:
    """All tables, for the document."""
    start = time.monotonic()
    calibration = [Load(name, 1, 1) for name in ("forward", "unix", "tcp")]
    costs = machines.calibrate(HOST, calibration, chosen.rounds, chosen.seconds)
    found = arms(stack, chosen.knobs)
    loads, rates = loads_of(found), Rates()
    runs = len(loads) * chosen.rounds
    print(f"{runs} boots, about {runs * (chosen.seconds + 0.15) / 60:.0f} minutes", file=sys.stderr, flush=True)
    predict(machines, loads, rates)
    measure(machines, loads, chosen.rounds, chosen.seconds, rates)
    rows = validated(found, rates)
    rungs, shapes = ladder(machines), published(machines)
    minutes = (time.monotonic() - start) / 60
    path = keep("sim", {
        "costs": HOST.read_text(encoding="utf-8").splitlines(),
        "instruction": costs,
        "validated": [vars(row) for row in rows],
        "published": shapes,
        "ladder": rungs,
    })  # fmt: skip
    print(f"costs: {HOST}; all numbers: {path}", file=sys.stderr)
    rounds = f"{chosen.rounds} rounds of samples of {chosen.seconds:g} s"
    how = f"Measured {here_and_now()}, in {minutes:.0f} minutes: {rounds}."
    return sim_page.page(how, costs, defaults(found, rates), rows, shapes, rungs, speed(machines))


def options(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./dev bench sim", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds and short samples: a look, no measurement")
    parser.add_argument("--write", action="store_true", help="into docs/measured/simulator.md")
    parser.add_argument("knobs", nargs="*", metavar="KNOB", help="words of the names of knobs; all unless named")
    chosen = parser.parse_args(argv)
    chosen.rounds, chosen.seconds = (2, 0.05) if chosen.quick else (5, 0.15)
    if chosen.write and chosen.knobs:
        parser.error("--write makes the whole table: leave out names of knobs")
    if chosen.knobs and not any(word in strategy.knob for word in chosen.knobs for strategy in STRATEGIES):
        parser.error(f"no such knob; there are: {', '.join(dict.fromkeys(s.knob for s in STRATEGIES))}")
    return chosen


def main(argv: Sequence[str]) -> int:
    """The command line; its exit status."""
    chosen = options(argv)
    host, sim = Installed(), Installed("sim")
    try:
        with Topology(host) as topology:
            stack = known(topology)
        text = bench(Machines(host, sim), stack, chosen)
    finally:
        host.remove()
        sim.remove()
    print(text)
    if chosen.write:
        replace_between(DOCUMENT, BEGIN, END, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
