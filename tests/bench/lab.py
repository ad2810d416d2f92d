# SPDX-License-Identifier: BSD-2-Clause
"""The controller's overhead on the samples of a run, and the memory growth of its worker: `./dev bench lab`.

The service's own worker measures a plan on the lab of namespaces. The bench prints how long each boot takes besides its
samples, and the same for each sample and for the whole run. Then it runs `--runs` tiny runs, and prints the memory of
the worker, with its children, before and after them. The first run comes before, so that the worker has imported
everything by then. With `--aa` an A/A run of that many minutes gives the false positive rate of verdicts here.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import django

from playbooks.module_utils import processes

PLAN = """\
name: bench-lab
baseline: a
variants: [{{name: a, target: {target}}}]
tests: [tcp.rr/host-host/ipv4, udp.rr/host-host/ipv4]
samples: {samples}
boots: {boots}
seconds: 1
gates: off
"""
TINY = PLAN.replace("tests: [tcp.rr/host-host/ipv4, udp.rr/host-host/ipv4]", "tests: [tcp.rr/host-host/ipv4]")
MIB = 1024 * 1024


@dataclass(frozen=True)
class Span:
    """A boot or a run: its duration, and that of its tools, in seconds, for that many samples."""

    seconds: float
    tools: float
    samples: int

    @property
    def beside(self) -> float:
        return self.seconds - self.tools

    @property
    def overhead(self) -> float:
        return self.beside / self.samples


def measured(text: str, testbed: str) -> int:
    """Measure a plan and return the number of its run. Raises SystemExit unless it succeeds."""
    from perfweb.runs import services
    from perfweb.runs.models import Run, RunState

    number = services.submit(text, testbed).number
    while (run := Run.objects.get(number=number)).ended is None:
        time.sleep(0.2)
    if run.state != RunState.DONE or run.reason:
        raise SystemExit(f"run {number} is {run.state}: {run.reason}")
    return number


def spans(number: int) -> tuple[Span, list[Span]]:
    """The run and its boots."""
    from perfweb.runs.models import Boot, Run

    run = Run.objects.get(number=number)
    boots = []
    for boot in Boot.objects.filter(run=run).order_by("position"):
        measured = [(measurement.seconds, len(measurement.gauges)) for measurement in boot.measurements.all()]
        assert boot.ended is not None
        seconds = (boot.ended - boot.started).total_seconds()
        boots.append(Span(seconds, sum(tools for tools, _ in measured), sum(samples for _, samples in measured)))
    assert run.started is not None
    assert run.ended is not None
    whole = (run.ended - run.started).total_seconds()
    return Span(whole, sum(boot.tools for boot in boots), sum(boot.samples for boot in boots)), boots


def spread(values: Sequence[float]) -> str:
    """Median, min and max, in seconds."""
    return f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"


def memory(worker: int) -> float:
    """Resident memory of the worker and its children in MiB; what they share counts for each (proc_pid_statm(5))."""
    pages = 0
    for pid in (worker, *(process.pid for process in processes.descendants({worker}))):
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def processor(worker: int) -> float:
    """CPU seconds of the worker and its children, with ended ones (proc_pid_stat(5)).

    A reaped process counts for the one that waited for it; a module on a host of the lab is none of these.
    """
    ticks = 0
    for pid in (worker, *(process.pid for process in processes.descendants({worker}))):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def print_times(number: int, busy: float) -> None:
    """Print the time of a run's boots besides the samples, and their CPU time."""
    run, boots = spans(number)
    print(f"run {number}: {len(boots)} boots, {run.samples} samples in {run.seconds:.1f} s")
    print(f"  a boot beside its samples        {spread([boot.beside for boot in boots])}")
    print(f"  of that for each sample          {spread([boot.overhead for boot in boots])}, median and range of boots")
    print(f"  the whole run for each sample    {run.overhead:.2f} s, with preparing, building and restoring")
    print(f"  processor time of the worker     {busy / run.samples:.2f} s for each sample")


def print_memory(worker: int, tiny: str, testbed: str, runs: int) -> None:
    """Print the worker's memory before that many runs, and ten times during them."""
    before = memory(worker)
    for done in range(1, runs + 1):
        measured(tiny, testbed)
        if done * 10 // runs > (done - 1) * 10 // runs:
            print(f"  after {done} more runs: {memory(worker):.1f} MiB, which was {before:.1f} MiB", flush=True)


def print_false_positives(target: str, minutes: float, testbed: str) -> None:
    """Print how often each rule reports a difference between equal variants, in a run of that many minutes."""
    from perfweb.reports.calibrations import trust
    from perfweb.runs.calibration import TESTS, calibrate, plan_text
    from perfweb.runs.models import Calibration
    from perfweb.stats.design.falsealarms import RULES

    number = measured(f"{plan_text(target, TESTS, minutes)}gates: off\n", testbed)
    calibrate(number)  # the worker does as well, a moment after the end of the run
    rows = list(Calibration.objects.filter(run=number))
    for row in rows:
        print(f"A/A of {row.test}: boots ±{row.boot_deviation:.2f} %, samples ±{row.sample_deviation:.2f} %")
        for rule, alarm in ((rule, row.alarms[rule]) for rule in RULES):
            print(f"  {rule:42}{alarm['share']:6.1%} of {row.comparisons}, intervals ±{alarm['width']:.2f} %")
    if overall := trust(rows):
        print(f"of all {overall.comparisons} comparisons, of which {overall.disjoint} have no boot in common:")
        for counted in overall.rules:
            print(f"  {counted.rule:42}{counted.share:6.1%}" + (", the rule of verdicts" if counted.decides else ""))


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench lab", description=__doc__)
    parser.add_argument("--worker", type=int, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--testbed", default="demo", help=argparse.SUPPRESS)
    parser.add_argument("--target", choices=["linux", "stack"], default="linux", help="what is booted (linux)")
    parser.add_argument("--boots", type=int, default=5, help="boots to look at (5)")
    parser.add_argument("--samples", type=int, default=10, help="samples of each of two tests in a boot (10)")
    parser.add_argument(
        "--aa", type=float, default=0, metavar="MINUTES", help="also false alarms, measured so long (0)"
    )
    parser.add_argument("--runs", type=int, default=10, help="tiny runs, for the memory of the worker (10)")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
    django.setup()
    about = {"target": options.target, "boots": options.boots, "samples": options.boots * options.samples}
    begun = processor(options.worker)
    number = measured(PLAN.format(**about), options.testbed)
    print_times(number, processor(options.worker) - begun)
    print("the worker with its children")
    tiny = TINY.format(**{**about, "boots": 1, "samples": 1})
    print_memory(options.worker, tiny, options.testbed, options.runs)
    if options.aa:
        print_false_positives(options.target, options.aa, options.testbed)


if __name__ == "__main__":
    main()
