# SPDX-License-Identifier: BSD-2-Clause
"""Runs one boot: boot, check, measure, collect, stop. A fault here fails this boot and not the run."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from perfweb.lab.inventory import InventoryHost
from perfweb.lab.origins import Origin
from perfweb.measuring import record, spool, tools
from perfweb.measuring.planner import PlannedBoot, PlannedMeasurement
from perfweb.measuring.raw import RawMeasurement, RawSample
from perfweb.measuring.tools import counted, simstack
from perfweb.runs import progress
from perfweb.runs.catalogue import Test
from perfweb.runs.models import Boot, BootState, Measurement, Run, Sample, Target, Topology, Variant
from perfweb.runs.planfile import PlanSpec
from playbooks.module_utils.tunnels import TUNNELS
from runners.ansible.driver import Listener, PlayCancelledError, PlayError
from runners.ansible.plays import PATIENCE_SECONDS, BootRequest, Plays, Sampling
from runners.consoles import Consoles
from runners.db_retry import DatabaseGoneError, retry_db

log = logging.getLogger(__name__)


class WrongTunablesError(Exception):
    """The target booted with other settings than configured."""


class _Measuring(Protocol):
    """A play that measures: `replicate` or `finish`."""

    def __call__(self, request: BootRequest, sampling: Sampling, listener: Listener) -> None: ...


@dataclass(frozen=True)
class Bench:
    """What all boots of a run share; `hosts` by role."""

    run: Run
    plan: PlanSpec
    plays: Plays
    hosts: Mapping[str, InventoryHost]


def run_boot(bench: Bench, variant: Variant, planned: PlannedBoot, missing: Sequence[PlannedMeasurement]) -> bool:
    """Boots `variant` and takes the `missing` measurements of the planned boot. Returns whether further boots of the
    variant can succeed: not if a kernel that counts panics, hangs or reports an error.

    Raises PlayCancelledError; OSError without space for this machine's own files (the boot is then left to `restore`);
    and DatabaseGoneError. Any other exception fails this boot, and the run goes on with the next one.
    """
    block = 0 if planned.sentinel else planned.block  # a sentinel is the same each time
    layout = bench.plan.layout_of(block) if variant.target == Target.STACK else None
    # All variants of a block have the same one, in every run.
    seed = planned.block + 1 if bench.plan.origin != Origin.MEASURED else None
    boot = retry_db(lambda: record.boot_started(bench.run, variant, planned, layout, seed))
    booted = _Booted(bench, boot, variant, missing)
    booted.go()
    return not booted.broken


class _Booted:
    """A running boot: `left` are the remaining measurements, `samples` those so far of the first one.

    `late` names what timed out since the play began, `debugger` has the debugger output of each hang.
    """

    def __init__(self, bench: Bench, boot: Boot, variant: Variant, missing: Sequence[PlannedMeasurement]) -> None:
        self.bench = bench
        self.boot = boot
        self.request = BootRequest(
            boot_id=f"boot{boot.position}-{boot.attempt}",
            target=variant.target,
            topology=boot.topology,
            server=boot.server,
            tunables=variant.tunables,
            prefix=variant.build.prefix if variant.build else "",
            layout=boot.layout,
            emulated=bench.plan.origin != Origin.MEASURED,
        )
        self.counted = bench.plan.origin == Origin.COUNTED
        self.printed = ""
        self.left = list(missing)
        self.samples: list[RawSample] = []
        self.up = False
        self.error = ""
        self.broken = False
        self.late = ""
        self.debugger = ""
        self.counters: Mapping[str, str] | None = None
        self.ending: Mapping[str, Any] | None = None
        self.listener = Listener(handed=self._handed, report=self._report)
        self.consoles = Consoles(bench.hosts.values())

    def go(self) -> None:
        """Sets one final state in any case: stopped, failed, crashed, or interrupted."""
        try:
            self._begin_journal()
            self._measure(self.bench.plays.replicate)
            while self.left and not self.error and self._lives():
                self._measure(self.bench.plays.finish)
            self._finish()
        except PlayCancelledError:
            self._interrupted("stopped before it was done")
            raise
        except OSError as error:
            self._interrupted(f"stopped, because this machine could not continue: {error}")
            raise
        except DatabaseGoneError:
            raise
        except Exception as error:
            log.exception("%s failed", self.boot)
            self.error = f"error in this program, see the worker's log: {error!r}"
            self._finish_failed()
        self._forget_journal()

    def _finish(self) -> None:
        while self.left:
            self._keep(f"not measured: {self.error or 'the stack had crashed before'}")
        self._stop()

    def _finish_failed(self) -> None:
        """Ends the boot after an unexpected exception; `restore` does the rest."""
        try:
            self._finish()
        except (PlayCancelledError, OSError, DatabaseGoneError):
            raise
        except Exception:
            log.exception("%s cannot be stopped in order", self.boot)
            self._end(BootState.FAILED, self.error)

    def _begin_journal(self) -> None:
        journal = spool.begin(self.bench.run, self.boot.pk, map(self._raw, self.left))
        self.listener = replace(self.listener, journal=journal)

    def _measure(self, play: _Measuring) -> None:
        """Plays the remaining measurements.

        A failure costs the present measurement, or all if the target does not come up.
        """
        self.counters, self.late, before = None, "", len(self.left)
        try:
            play(self.request, self._sampling(), self.listener)
            problem = "" if self.error or len(self.left) < before else "its host reported no result"
        except PlayCancelledError:
            raise
        except WrongTunablesError as wrong:
            self.error, self.samples, problem = str(wrong), [], ""
        except PlayError as failure:
            problem = str(failure)
        if problem and not self.up:
            self.error = f"it did not boot: {problem}"
        elif problem and self.left:
            self._keep(problem)
        elif problem:
            log.warning("%s: %s", self.boot, problem)
        if self.request.target == Target.STACK and (why := self.late or problem):
            self._debug(why)

    def _debug(self, why: str) -> None:
        """Stores the debugger output of a running stack before it is stopped."""
        try:
            threads = self.bench.plays.debugger(self.request)
        except PlayCancelledError:
            raise
        except PlayError as failure:
            threads = f"its host did not respond: {failure}\n"
        if threads:
            self.debugger += f"== {why}\n{threads}"
            retry_db(lambda: record.debugger(self.boot, self.debugger))

    def _sampling(self) -> Sampling:
        plan, measure = self.bench.plan, self.left[0].test.measure  # measurements of one server have one host
        # One boot of a kernel that counts runs all loads: it is one sample.
        measured = self.left[:1] if self.counted else self.left
        return Sampling(measure.host, list(map(self._order, measured)), plan.timeout, plan.gates)

    def _order(self, planned: PlannedMeasurement) -> dict[str, object]:
        """Returns a measurement as input of the hosts."""
        plan, busy = self.bench.plan, list(tools.busy(planned.test.measure))
        return {
            "test": planned.test.name,
            "argv": self._argv(planned.test),
            "samples": planned.samples,
            "discard": planned.discard,
            "voids_allowed": planned.samples if plan.voids_allowed is None else plan.voids_allowed,
            "busy": busy,
            "patience": PATIENCE_SECONDS if busy else 0.0,
        }

    def _argv(self, test: Test) -> list[str]:
        seconds, prefix = self.bench.plan.seconds, self.request.prefix
        if self.request.emulated:
            seed = self.boot.seed or 1
            booting = counted.booting(seed) if self.counted else simstack.booting(self.request.tunables, seed)
            return [*tools.command(test.measure, "", seconds, prefix), *booting]
        return tools.command(test.measure, self._address(test), seconds, prefix)

    def _handed(self, data: Mapping[str, Any]) -> None:
        """Handles the outputs of the play, step by step."""
        if "effective" in data:
            self.up = True
            effective = data["effective"]
            if not effective:
                self.late = "it did not report its tunables"
            retry_db(lambda: record.boot_up(self.boot, data, effective))
            if wrong := tunables_problem(self.request.tunables, effective):
                raise WrongTunablesError(wrong)
        elif "counters" in data:
            self._count(data["counters"])
        elif "ended" in data:
            self.ending = data

    def _report(self, report: Mapping[str, Any]) -> None:
        """Handles a report of the host: the start of a measurement, or a sample."""
        if "sample" not in report:
            progress.publish(self.boot.run_id, "measuring", test=report["test"], variant=self.boot.variant.name)
            return
        sample = RawSample.read(report["sample"])
        self.samples.append(sample)
        if sample.timed_out:
            self.late = f"a sample of {report['test']} did not end in time"
        if self.counted:
            self._count_loads(sample)
        elif not report["left"]:
            self._keep("")

    def _count_loads(self, sample: RawSample) -> None:
        """Stores what each load cost on a boot of a kernel that counts, or why that failed."""
        self.printed = sample.stderr
        if why := counted.failure(sample):
            self.error, self.broken = why, True
            self.samples = []
            return
        for part in counted.by_load(sample, [planned.test.name for planned in self.left]):
            self.samples = [part]
            self._keep("")

    def _raw(self, planned: PlannedMeasurement, reason: str = "") -> RawMeasurement:
        test = planned.test
        argv, pinning = self._argv(test), self._pinning(test)
        return RawMeasurement(self.boot.pk, test.name, planned.discard, argv, pinning, self.samples, reason)

    def _keep(self, reason: str) -> None:
        """Stores the first remaining measurement with its samples; `reason` is why samples are missing.

        The spool gets it first, so that a database outage loses nothing.
        """
        raw = self._raw(self.left[0], reason)
        path = self._spooled(raw)
        measurement = retry_db(lambda: record.measurement(raw))
        if path:
            spool.remove(path)
        del self.left[0]
        self.samples = []
        _publish(measurement, self.boot.variant.name)

    def _spooled(self, raw: RawMeasurement) -> Path | None:
        """Returns its file in the spool; None on a full disk, which loses nothing as long as the database answers."""
        try:
            return spool.put(self.bench.run, raw)
        except OSError as error:
            log.warning("%s: %s is not in the spool: %s", self.boot, raw.test, error)
            return None

    def _lives(self) -> bool:
        """Returns whether the target returned its counters; a simulated target exists only during a sample."""
        if self.request.emulated:
            return True
        if self.counters is None:
            try:
                self._count(self.bench.plays.collect(self.request))
            except PlayCancelledError:
                raise
            except PlayError as failure:
                log.warning("no counters of %s: %s", self.boot, failure)
                return False
        return self.request.target != Target.STACK or bool(self.counters and self.counters.get("sysctl"))

    def _count(self, counters: Mapping[str, str]) -> None:
        self.counters = counters
        if self.request.target == Target.STACK and not counters.get("sysctl"):
            self.late = self.late or "it did not report its counters"
        retry_db(lambda: record.counters(self.boot, counters))

    def _stop(self) -> None:
        try:
            ending = self.bench.plays.stop(self.request) if self.ending is None else self.ending
        except PlayError as failure:
            error = "; ".join(filter(None, [self.error, f"it could not be stopped: {failure}"]))
            self._end(BootState.FAILED, error)
            return
        state, error = (BootState.FAILED, self.error) if self.error else (BootState.STOPPED, "")
        if ending.get("crashed") and not error:
            state, error = BootState.CRASHED, f"it ended by itself with status {ending.get('exit_status')}"
        self._end(state, error, str(ending.get("log") or self.printed))

    def _end(self, state: BootState, error: str, printed: str = "") -> None:
        console = self.consoles.output()
        retry_db(lambda: record.boot_ended(self.boot, state, error, printed, console))

    def _interrupted(self, why: str) -> None:
        """Keeps the samples of an interrupted measurement, which is repeated when the run goes on."""
        if self.samples:
            self._keep(why)
        self._end(BootState.INTERRUPTED, why)
        self._forget_journal()

    def _forget_journal(self) -> None:
        if self.listener.journal:
            spool.remove(self.listener.journal)

    def _server(self) -> InventoryHost:
        return self.bench.hosts["right" if self.boot.topology == Topology.HOST_ROUTER_HOST else "dut"]

    def _address(self, test: Test) -> str:
        """Returns the address at which the client finds the server."""
        if test.tunnel:
            tunnel = TUNNELS[test.tunnel]
            inside = tunnel.address("dut") if test.family == "ipv4" else tunnel.address6("dut")
            return inside.split("/")[0]
        return self._server().data_address(test.family)

    def _pinning(self, test: Test) -> dict[str, str]:
        """Returns CPUs by role in the experiment, in the format of taskset(1)."""
        if self.request.emulated:
            return {}  # pinning has no effect on what is simulated or counted
        server = self._server()
        pinning = {
            "client": self.bench.hosts[test.measure.host].cpus,
            "server": server.cpus_alone if test.measure.alone else server.cpus,
        }
        if self.boot.topology == Topology.HOST_ROUTER_HOST:
            pinning["router"] = self.bench.hosts["dut"].cpus
        return pinning


def tunables_problem(planned: Mapping[str, str], effective: Mapping[str, str]) -> str:
    """Returns the tunables that differ from the configured ones, or an empty text."""
    wrong = [
        f"{name} is {effective.get(name, 'unknown')} instead of {value}"
        for name, value in planned.items()
        if effective.get(name) != value
    ]
    return f"booted with other tunables than configured: {', '.join(wrong)}" if wrong else ""


def _publish(measurement: Measurement, variant: str) -> None:
    """Publishes the mean of the good samples."""
    samples = retry_db(lambda: list(Sample.objects.filter(measurement=measurement).primary().good()))
    mean = sum(sample.value for sample in samples) / len(samples) if samples else None
    progress.publish(
        measurement.boot.run_id,
        "measurement",
        test=measurement.test,
        variant=variant,
        state=measurement.state,
        reason=measurement.reason,
        mean=mean,
        unit=samples[0].unit if samples else "",
    )
