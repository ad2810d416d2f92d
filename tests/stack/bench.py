# SPDX-License-Identifier: BSD-2-Clause
"""The rates of the stack, compared with Linux's own sockets.

`./dev bench stack [--quick] [--rounds 5] [--seconds 2] [--patience 30] [--resume] [--write] [ROW ...]` prints a table
and writes var/bench/stack.json with every sample; --write makes docs/measured/speed.md. Rounds are interleaved: each
measures every row on both sides once, so that a change of the machine affects both. Samples taken while the CPUs were
not at their best (tests/stack/control.py) are repeated, for at most `patience` minutes from the start. Samples are
stored on Ctrl-C, too, and --resume continues with them, so that the quiet minutes of a busy machine add up.
tests/stack/measures.py describes the topologies.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.stack.bench_page import Measured, Result, Taken, page, report
from tests.stack.builds import ROOT
from tests.stack.conditions import conditions, require_same
from tests.stack.control import Control, Look
from tests.stack.measures import Bench, Row
from tests.stack.results import keep, kept
from tests.stack.rows import ROWS
from tests.stack.topology import Installed, Topology

PAGE = ROOT / "docs" / "measured" / "speed.md"
MODULES = ("rows", "measures")  # columns that identify a row


def begin(names: Sequence[str], rounds: int, control: Control) -> Measured:
    """Return empty samples of these rows."""
    rows = {name: ROWS[name] for name in names}
    return Measured({name: Result(row.unit, row.cpu_unit, rounds, control) for name, row in rows.items()}, control)


def resume(measured: Measured, document: Mapping[str, Any], machine: Mapping[str, object]) -> None:
    """Take over the samples of an earlier call; ValueError if it measured something else, or on another machine."""
    require_same(document["machine"], machine)
    if left_out := document["rows"].keys() - measured.results.keys():
        raise ValueError(f"what is kept has {', '.join(sorted(left_out))}, too: name these, or leave out --resume")
    measured.control.learn(Look(*document["control"]))
    for name, row in document["rows"].items():
        measured.results[name].taken = {
            side: [Taken(sample["rate"], sample["cpu"], Look(*sample["control"])) for sample in taken]
            for side, taken in row["taken"].items()
        }


def measure(measured: Measured, seconds: float) -> None:
    """Measure all rows, in rounds, until each has enough samples of quiet CPUs or the patience is over; in seconds.

    Samples are stored after an interruption, too; those of an earlier call stay if this one does not even begin.
    """
    control, installed = measured.control, Installed()
    try:
        with Topology(installed) as topology:
            bench = Bench(topology, seconds)
            measured.settings = bench.settings()
            try:
                fill(measured.results, control, lambda name, side: _take(bench, ROWS[name], side, control))
            finally:
                print(f"samples: {keep('stack', document(measured, conditions(seconds, *MODULES)))}", file=sys.stderr)
                control.remember()
    finally:
        installed.remove()


def fill(results: Mapping[str, Result], control: Control, take: Callable[[str, str], Taken]) -> None:
    """Take a sample of each unfinished row in each round, until there is none."""
    for turn in itertools.count(1):
        wanted = _wanted(results, control)
        if not wanted:
            return
        print(f"round {turn}: {len(wanted)} samples", file=sys.stderr, flush=True)
        for name, side in wanted:
            results[name].taken.setdefault(side, []).append(take(name, side))


def _wanted(results: Mapping[str, Result], control: Control) -> list[tuple[str, str]]:
    """Return the rows and sides to measure in a round."""
    return [
        (name, side)
        for name, result in results.items()
        for side in ROWS[name].sides
        if len(counted := result.counted(side)) < result.rounds
        or (control.waits() and not all(control.is_quiet(sample.control) for sample in counted))
    ]


def _take(bench: Bench, row: Row, side: str, control: Control) -> Taken:
    sample, look = control.around(lambda: row.measure(bench, row, side))
    cpu = None if sample.cpu is None else sample.cpu * row.cpu_scale
    return Taken(sample.rate * row.scale, cpu, look)


def document(measured: Measured, machine: Mapping[str, object]) -> dict[str, object]:
    """Every sample, and the conditions of the measurement."""
    return {
        "machine": machine,
        "control": measured.control.best,
        "linux": measured.settings,
        "rows": {name: result.document() for name, result in measured.results.items()},
    }


def main(argv: Sequence[str]) -> int:
    """The command line; its exit status."""
    parser = argparse.ArgumentParser(
        prog="./dev bench stack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round of half a second each: a look, no measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each sample")
    parser.add_argument("--patience", type=float, default=30.0, help="minutes, after which busy CPUs will do")
    parser.add_argument("--resume", action="store_true", help="go on with what an earlier call has measured")
    parser.add_argument("--write", action="store_true", help="make docs/measured/speed.md of it")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="words of the names of rows; all unless named")
    options = parser.parse_args(argv)
    names = [name for name in ROWS if not options.rows or any(word in name for word in options.rows)]
    if not names:
        parser.error(f"no such row; there are: {'; '.join(ROWS)}")
    if options.write and (options.quick or options.rows):
        parser.error("--write makes the whole page: leave out --quick and words of rows")
    if options.quick:
        options.rounds, options.seconds, options.patience = 1, 0.5, 0.0
    measured = begin(names, options.rounds, Control.remembering(options.patience * 60))
    if options.resume:
        try:
            resume(measured, kept("stack"), conditions(options.seconds, *MODULES))
        except (OSError, ValueError) as why:
            parser.error(str(why))
    try:
        measure(measured, options.seconds)
    except KeyboardInterrupt:
        print("interrupted: the same with --resume goes on", file=sys.stderr)
        return 130
    print(report(measured))
    if options.write:
        PAGE.write_text(page(measured, options.rounds, options.seconds), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
