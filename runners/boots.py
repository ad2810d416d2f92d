# SPDX-License-Identifier: BSD-2-Clause
"""One boot of a run: boot, check, measure, collect, stop.  What goes wrong here costs this boot and not the run."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfweb.lab.inventory import InventoryHost
from perfweb.runs import progress
from perfweb.runs.catalogue import Test
from perfweb.runs.models import Boot, BootState, Measurement, MeasurementState, Run, Sample, Target, Topology, Variant
from perfweb.runs.planfile import PlanSpec
from runners import record, spool, tools
from runners.driver import PlayCancelledError, PlayError
from runners.patience import patiently
from runners.planner import PlannedBoot, PlannedMeasurement
from runners.plays import BootRequest, Plays
from runners.validity import Taken

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bench:
    """What all boots of a run have in common; `hosts` by role."""

    run: Run
    plan: PlanSpec
    plays: Plays
    hosts: Mapping[str, InventoryHost]


def run_boot(bench: Bench, variant: Variant, planned: PlannedBoot, missing: Sequence[PlannedMeasurement]) -> None:
    """Boots `variant` and takes the `missing` measurements of the planned boot.

    Raises PlayCancelledError (the boot is then left to `restore`) and DatabaseGoneError, nothing else that a host or a
    tool can cause.
    """
    boot = patiently(lambda: record.boot_started(bench.run, variant, planned))
    _Booted(bench, boot, variant).go(missing)


class _Booted:
    def __init__(self, bench: Bench, boot: Boot, variant: Variant) -> None:
        self.bench = bench
        self.boot = boot
        self.request = BootRequest(
            boot_id=f"boot{boot.position}-{boot.attempt}",
            target=variant.target,
            topology=boot.topology,
            server=boot.server,
            tunables=variant.tunables,
            prefix=variant.build.prefix if variant.build else "",
        )

    def go(self, missing: Sequence[PlannedMeasurement]) -> None:
        """One state at the end, whatever happened: stopped, failed, crashed, or interrupted."""
        try:
            error = self._come_up()
            alive = not error and self._measure_all(missing)
        except PlayCancelledError:
            patiently(lambda: record.boot_ended(self.boot, BootState.INTERRUPTED, "stopped before it was done"))
            raise
        for planned in missing if error else []:
            self._keep(planned, {}, f"not measured: {error}")
        self._stop(error, alive=alive)

    def _come_up(self) -> str:
        """Boots and checks the tunables; returns what went wrong."""
        try:
            outcome = self.bench.plays.boot(self.request)
        except PlayCancelledError:
            raise
        except PlayError as failure:
            return f"it did not boot: {failure}"
        effective: dict[str, str] = outcome.get("effective", {})
        patiently(lambda: record.boot_up(self.boot, outcome, effective))
        return tunables_problem(self.request.tunables, effective)

    def _measure_all(self, missing: Sequence[PlannedMeasurement]) -> bool:
        """Measures until the target is found dead; then the rest is failed without waiting for it.

        Returns whether it lives.
        """
        dead = False
        for planned in missing:
            if dead:
                self._keep(planned, {}, "not measured: the stack had crashed before")
            elif self._measure(planned).state == MeasurementState.FAILED:
                dead = not self._collect()
        return not dead

    def _measure(self, planned: PlannedMeasurement) -> Measurement:
        test = planned.test
        address = self._server().data_address(test.family)
        argv = tools.command(test.measure, address, self.bench.plan.seconds, self.request.prefix)
        plan = self.bench.plan
        allowed = planned.samples if plan.voids_allowed is None else plan.voids_allowed
        taken, reason = Taken(planned, plan.gates, allowed), ""
        progress.publish(self.boot.run_id, "measuring", test=test.name, variant=self.boot.variant.name)
        try:
            host, busy = test.measure.host, tools.busy(test.measure)
            while count := taken.wanted():
                result = self.bench.plays.measure(self.request, argv, count, plan.timeout, host=host, busy=busy)
                taken.add(result["samples"])
        except PlayCancelledError:
            raise
        except PlayError as failure:
            reason = str(failure)
        return self._keep(planned, {"argv": argv, "samples": taken.outputs, "voids": taken.voids()}, reason)

    def _keep(self, planned: PlannedMeasurement, result: Mapping[str, object], reason: str) -> Measurement:
        """Into the spool first, so that a database that is away loses nothing."""
        test, pinning = planned.test, self._pinning(planned.test)
        document = record.document(self.boot, test.name, planned.discard, result, pinning, reason)
        path = spool.put(self.bench.run, document)
        measurement = patiently(lambda: record.measurement(document))
        spool.remove(path)
        _publish(measurement, self.boot.variant.name)
        return measurement

    def _collect(self) -> bool:
        """Keeps the counters; returns whether the target answered."""
        try:
            views = self.bench.plays.collect(self.request)
        except PlayCancelledError:
            raise
        except PlayError as failure:
            log.warning("no counters of %s: %s", self.boot, failure)
            return False
        patiently(lambda: record.counters(self.boot, views))
        return self.request.target != Target.STACK or bool(views.get("sysctl"))

    def _stop(self, error: str, *, alive: bool) -> None:
        try:
            ending = self._ending(alive=alive)
        except PlayError as failure:
            error = "; ".join(filter(None, [error, f"it could not be stopped: {failure}"]))
            patiently(lambda: record.boot_ended(self.boot, BootState.FAILED, error))
            return
        state = BootState.FAILED if error else BootState.STOPPED
        if ending.get("crashed") and not error:
            state, error = BootState.CRASHED, f"it ended by itself with status {ending.get('exit_status')}"
        patiently(lambda: record.boot_ended(self.boot, state, error, str(ending.get("log") or "")))

    def _ending(self, *, alive: bool) -> dict[str, Any]:
        """Stops the boot and says how it ended; one that lives is asked for its counters first."""
        if alive:
            try:
                ending = self.bench.plays.finish(self.request)
            except PlayError as failure:
                log.warning("no counters of %s: %s", self.boot, failure)
            else:
                patiently(lambda: record.counters(self.boot, ending["counters"]))
                return ending
        return self.bench.plays.stop(self.request)

    def _server(self) -> InventoryHost:
        return self.bench.hosts["dut" if self.boot.topology == Topology.HOST_HOST else "right"]

    def _pinning(self, test: Test) -> dict[str, str]:
        """CPUs by role in the experiment, as taskset(1) takes them."""
        server = self._server()
        pinning = {
            "client": self.bench.hosts[test.measure.host].cpus,
            "server": server.cpus_alone if test.measure.alone else server.cpus,
        }
        if self.boot.topology == Topology.HOST_ROUTER_HOST:
            pinning["router"] = self.bench.hosts["dut"].cpus
        return pinning


def tunables_problem(asked: Mapping[str, str], effective: Mapping[str, str]) -> str:
    """Which tunables are not what was asked for, or an empty text."""
    wrong = [
        f"{name} is {effective.get(name, 'unknown')} instead of {value}"
        for name, value in asked.items()
        if effective.get(name) != value
    ]
    return f"booted with other tunables than asked for: {', '.join(wrong)}" if wrong else ""


def _publish(measurement: Measurement, variant: str) -> None:
    """Tells the watchers the mean of the samples that count."""
    samples = patiently(lambda: list(Sample.objects.filter(measurement=measurement).counted()))
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
