# SPDX-License-Identifier: BSD-2-Clause
"""The effect of each strategy of dispatch and locking on this machine, relative to the default.

`./dev bench knobs [--quick] [--signs] [--patience 60] [--resume] [--write] [KNOB ...]` first prints its expected
duration with quiet CPUs. It prints a table of strategies and workloads and the published comparisons measured here, and
stores every sample in var/bench/knobs.json; --write makes docs/measured/knobs.md. A cell is one value of one knob under
one workload in memory. In each round the boots of a workload are in a random order, and the ratio is that to the
default's boot of the same round. Samples taken while the CPUs were not at their best (tests/stack/control.py) are
repeated at once, so that a round stays one, for at most `patience` minutes from the start. Samples are stored on
Ctrl-C, too, and --resume continues with them, except for the boots of the interrupted workload.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.stack.builds import ROOT
from tests.stack.conditions import conditions, require_same
from tests.stack.control import Control
from tests.stack.knobs_page import Measured, Sign, page, report
from tests.stack.knobs_samples import Samples, cells, document, measure_cells, missing, noise, read
from tests.stack.measures import Bench
from tests.stack.results import keep, kept
from tests.stack.strategies import PUBLISHED, STRATEGIES, WORKLOADS, groups, known
from tests.stack.topology import Installed, Topology

NAME = "knobs"  # of the stored samples
PAGE = ROOT / "docs" / "measured" / "knobs.md"
OVERHEAD = 0.46  # seconds of a sample without measurement: checks of the CPUs, boot, warm-up, end


def estimate(boots: int, seconds: float) -> str:
    """The duration of that many boots, in words."""
    return f"{boots} boots, about {boots * (seconds + OVERHEAD) / 60:.0f} minutes"


def options(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./dev bench knobs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few rounds and short samples: a look, no measurement")
    parser.add_argument("--signs", action="store_true", help="the published comparisons alone")
    parser.add_argument("--write", action="store_true", help="make docs/measured/knobs.md of it")
    parser.add_argument("--rounds", type=int, help="of the table (5)")
    parser.add_argument("--pairs", type=int, help="of the published comparisons (30)")
    parser.add_argument("--seconds", type=float, help="of each sample (0.4)")
    parser.add_argument("--patience", type=float, help="minutes, after which busy CPUs will do (60; quick: 0)")
    parser.add_argument("--resume", action="store_true", help="go on with what an earlier call has measured")
    parser.add_argument("knobs", nargs="*", metavar="KNOB", help="words of the names of knobs; all unless named")
    chosen = parser.parse_args(argv)
    chosen.rounds = chosen.rounds or (3 if chosen.quick else 5)
    chosen.pairs = chosen.pairs or (6 if chosen.quick else 30)
    chosen.seconds = chosen.seconds or (0.05 if chosen.quick else 0.4)
    if chosen.patience is None:
        chosen.patience = 0.0 if chosen.quick else 60.0
    if min(chosen.rounds, chosen.pairs) < 2 or chosen.seconds <= 0:
        parser.error("an interval needs two rounds and two pairs or more, and samples of more than no time")
    if chosen.write and (chosen.signs or chosen.knobs):
        parser.error("--write makes the whole page: leave out --signs and names of knobs")
    if chosen.knobs and not any(word in strategy.knob for word in chosen.knobs for strategy in STRATEGIES):
        parser.error(f"no such knob; there are: {', '.join(dict.fromkeys(s.knob for s in STRATEGIES))}")
    return chosen


@dataclass
class Taken:
    """All samples so far, and the minutes that they took."""

    signs: Samples = field(default_factory=Samples)
    cells: Samples = field(default_factory=Samples)
    minutes: float = 0.0

    def document(self, chosen: argparse.Namespace) -> dict[str, object]:
        """Return them as JSON for a file."""
        return {
            "machine": _conditions(chosen),
            "minutes": self.minutes,
            "signs": document(self.signs),
            "cells": document(self.cells),
        }


def resume(then: Mapping[str, Any], chosen: argparse.Namespace) -> Taken:
    """Load the samples of an earlier call; ValueError if it measured something else, or more, or on another machine."""
    require_same(then.get("machine", {}), _conditions(chosen))
    taken = Taken(read(then["signs"]), read(then["cells"]), then["minutes"])
    if taken.signs.rounds() > chosen.pairs or taken.cells.rounds() > chosen.rounds:
        raise ValueError("what is kept has more rounds or pairs: ask for as many, or leave out --resume")
    return taken


def _conditions(chosen: argparse.Namespace) -> dict[str, object]:
    return conditions(chosen.seconds, "rows", "measures", "strategies") | {"knobs": chosen.knobs}


def measure(chosen: argparse.Namespace, taken: Taken) -> str:
    """Measure the missing samples, and store them in any case; return the text to print."""
    installed = Installed()
    control = Control.remembering(chosen.patience * 60)
    comparisons = () if chosen.knobs else PUBLISHED
    signs = [comparison.arms() for comparison in comparisons]
    try:
        with Topology(installed) as topology:
            found = [] if chosen.signs else groups(known(topology), chosen.knobs)
            ahead = missing(signs, taken.signs, chosen.pairs) + missing(found, taken.cells, chosen.rounds)
            print(estimate(sum(len(group) for _, group in ahead), chosen.seconds), file=sys.stderr, flush=True)
            bench, start = Bench(topology, chosen.seconds), time.monotonic()
            try:
                measure_cells(bench, control, signs, taken.signs, chosen.pairs)
                measure_cells(bench, control, found, taken.cells, chosen.rounds)
            finally:
                taken.minutes += (time.monotonic() - start) / 60
                print(f"samples: {keep(NAME, taken.document(chosen))}", file=sys.stderr)
                control.remember()
    finally:
        installed.remove()
    noise_text = noise([taken.cells, taken.signs], control)
    as_published = [Sign(c.title, c.published, cells([c.arms()], taken.signs)[0]) for c in comparisons]
    units = {name: workload.row.unit for name, workload in WORKLOADS.items()}
    measured_cells = cells(found, taken.cells)
    if chosen.write:
        measured = Measured(chosen.rounds, chosen.pairs, chosen.seconds, taken.minutes, noise_text)
        PAGE.write_text(page(measured_cells, as_published, units, measured), encoding="utf-8")
    return f"{report(measured_cells, as_published, units)}\n\n{noise_text}"


def main(argv: Sequence[str]) -> int:
    """The command line; its exit status."""
    chosen = options(argv)
    try:
        taken = resume(kept(NAME), chosen) if chosen.resume else Taken()
    except (OSError, ValueError) as why:
        sys.exit(f"./dev bench knobs: {why}")
    try:
        print(measure(chosen, taken))
    except KeyboardInterrupt:
        print("interrupted: the same with --resume goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
