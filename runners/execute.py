# SPDX-License-Identifier: BSD-2-Clause
"""Executes a whole run, from the lease to a final state in the database and a restored lab."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from perfweb import logs
from perfweb.builds import packing
from perfweb.builds import services as builds
from perfweb.builds.models import Build
from perfweb.builds.sources import SourceError, Sources, archive_path, pack_sources
from perfweb.lab import outages
from perfweb.lab.inventory import InventoryError, read_inventory
from perfweb.lab.origins import Origin
from perfweb.measuring import record, space, spool_replay
from perfweb.measuring.planner import PlannedBoot, PlannedMeasurement, estimate, plan_boots
from perfweb.measuring.tools import TOOLS
from perfweb.runs import progress, states
from perfweb.runs.models import Measurement, MeasurementState, Run, Target, Variant
from perfweb.runs.planfile import PlanSpec, read_plan
from perfweb.transitions import IllegalTransitionError
from runners import health_check, heartbeat, recovery, worker_losses
from runners.ansible.driver import PlayCancelledError, PlayError, PlayFailedError
from runners.ansible.plays import Plays
from runners.boots import Bench, run_boot
from runners.building import Kernels, Stacks, patched
from runners.db_retry import DatabaseGoneError, retry_db
from runners.heartbeat import Heartbeat, StopRequestedError
from runners.stopping import Settled, closing, settled

log = logging.getLogger(__name__)
Transition = Callable[[int, str], Run]

EXPECTED = (PlayError, InventoryError, health_check.UnableError, SourceError, FileNotFoundError)
"""The testbed or the plan ends the run; the message has the reason."""


@dataclass(frozen=True)
class Ending:
    """The state and message of a run after the lab is restored."""

    transition: Transition
    reason: str


def execute(number: int, worker: str = "") -> bool:
    """Executes run `number` if it is queued and its testbed is free; returns whether. `worker` can recall the run."""
    with logs.about(run=number):
        try:
            run = retry_db(lambda: states.lease(number, worker))
        except (states.TestbedBusyError, IllegalTransitionError, Run.DoesNotExist) as reason:
            log.info("run %d is not started: %s", number, reason)
            return False
        _execute(run)
        return True


def _execute(run: Run) -> None:
    with Heartbeat(run) as beat, states.held_by(run.lease):
        try:
            ending = _work(run, beat)
            if beat.stop_reason == heartbeat.LOST:
                log.error("run %d was taken from this worker, which leaves it alone from now on", run.number)
                return
            _end(run, ending)
        except health_check.UnfitError as error:
            log.warning("run %d goes back into the queue: %s", run.number, error)
            retry_db(lambda reason=str(error): _put_off(run, reason))  # type: ignore[misc]
        except IllegalTransitionError as error:
            log.error("run %d was ended by another process: %s", run.number, error)
        except DatabaseGoneError:
            # The lab is clean; the state is set when the lease has expired and the database is back.
            log.exception("run %d ends without a database; what it measured is in the spool", run.number)
            _restore(run)


def _work(run: Run, beat: Heartbeat) -> Ending:
    """Executes everything between lease and restore. Raises DatabaseGoneError and UnfitError only."""
    try:
        return _measure_everything(run, beat)
    except (PlayCancelledError, StopRequestedError):
        if beat.stop_reason == heartbeat.CANCELLED:
            return Ending(states.cancel, "cancelled while it ran")
        return Ending(states.interrupt, beat.stop_reason)
    except (DatabaseGoneError, health_check.UnfitError):
        raise
    except Exception as error:
        return _cut_short(run, error)


def _cut_short(run: Run, error: Exception) -> Ending:
    """Returns the outcome of a run that an exception ended."""
    expected = isinstance(error, EXPECTED)
    # Without space Ansible reports whatever error it noticed first.
    if isinstance(error, space.DiskFullError) or space.is_full(error) or (expected and space.shortages()):
        return _paused(error)
    if isinstance(error, PlayError) and error.result.name == "prepare":
        retry_db(lambda: outages.failed(run.testbed, str(error)))
    if expected:
        return Ending(states.fail, str(error))
    if isinstance(error, IllegalTransitionError):
        return Ending(states.interrupt, str(error))
    log.error("run %d cannot continue", run.number, exc_info=error)
    ours = f"error in this program, see the worker's log: {error!r}"
    return Ending(states.fail, f"the controller cannot continue: {error}" if isinstance(error, OSError) else ours)


def _paused(error: Exception) -> Ending:
    """Pauses the run with all results kept; recovery queues it again when there is space."""
    found = "; ".join(map(str, space.shortages())) or str(error)
    return Ending(states.pause, f"disk full: {found}; the run continues by itself when there is space")


@transaction.atomic
def _put_off(run: Run, reason: str) -> None:
    """Puts the run back, because nothing was changed: it waits until its testbed is fit, and the testbed has the
    fault.
    """
    states.requeue(run.number, f"put off, {run.testbed} is not fit: {reason}")
    outages.failed(run.testbed, reason)


def _end(run: Run, ending: Ending) -> None:
    retry_db(lambda: states.restore(run.number, ending.reason))
    problem = _restore(run)
    if problem:
        reason = "; ".join(filter(None, [ending.reason, problem]))
        # A paused run goes on when the testbed is restored, which needs space, too.
        end = states.pause if ending.transition is states.pause else states.fail
        retry_db(lambda: end(run.number, reason, problem))
    else:
        retry_db(lambda: ending.transition(run.number, ending.reason))


def _restore(run: Run) -> str:
    """Restores the lab; returns the error, if any."""
    try:
        Plays(run).restore()
    except (PlayError, OSError) as error:
        log.exception("the lab of run %d is not restored", run.number)
        return f"{recovery.UNRESTORED}: {error}"
    return ""


def _measure_everything(run: Run, beat: Heartbeat) -> Ending:
    number = run.number
    space.require()
    retry_db(lambda: spool_replay.replay(run))
    plan = read_plan(run.plan.text)
    plays = Plays(run, beat.must_stop)
    health_check.require(run, plays)
    retry_db(lambda: states.prepare(number))
    hosts = read_inventory(Path(run.testbed.inventory))
    health_check.require_words(plan, hosts)
    if plan.origin == Origin.MEASURED:
        for family in sorted({test.outer_family for test in plan.tests}):
            for host in hosts.values():
                host.data_address(family)  # or this testbed lacks a feature for the plan
    prepared = plays.prepare(_tunnels(plan))
    retry_db(lambda: outages.worked(run.testbed))
    retry_db(lambda: record.host_facts(run, prepared["facts"]))
    health_check.require_means(prepared["lacking"])
    retry_db(lambda: states.build(number))
    variants = {variant.name: variant for variant in retry_db(lambda: _variants(run))}
    _build(plan, variants, plays)
    retry_db(lambda: states.start(number))
    decided = _measure(Bench(run, plan, plays, hosts), variants, beat)
    ending = retry_db(lambda: _verdict(run))
    return replace(ending, reason="; ".join(filter(None, [ending.reason, *decided])))


def _tunnels(plan: PlanSpec) -> dict[str, list[str]]:
    """Returns the kinds of tunnels whose ends Linux hosts have to make, by role: a stack makes its own."""
    kinds = sorted({test.tunnel for test in plan.tests if test.tunnel})
    on_linux = any(variant.target == Target.LINUX for variant in plan.variants)
    return {"left": kinds, "dut": kinds if on_linux else []}


def _variants(run: Run) -> list[Variant]:
    return list(run.variants.select_related("build").order_by("position"))


def _build(plan: PlanSpec, variants: dict[str, Variant], plays: Plays) -> None:
    """Builds what the variants need, each build once. A resumed run uses its first builds."""
    client_needs_build = any(TOOLS[test.measure.tool].from_build for test in plan.tests)
    needing = [
        variant
        for variant in variants.values()
        if client_needs_build or variant.build is not None or variant.target != Target.LINUX
    ]
    if not needing:
        return
    store = builds.source_store()
    if any(variant.build is None for variant in needing):
        sources = pack_sources(settings.BASE_DIR / "stack", store)
        for variant in needing:
            if variant.build is None:
                retry_db(lambda variant=variant: _assign(variant, sources))  # type: ignore[misc]
    named = {variant.build.key: variant.build for variant in needing if variant.build}
    keys = {variant.name: variant.build.key for variant in needing if variant.build}
    kind = Kernels if plan.origin == Origin.COUNTED else Stacks
    builder = kind(plays, patched(plan, keys))
    for build in builder.in_order(list(named.values())):
        _build_once(build, partial(builder.build, build, _archive(build, store)))
    for variant in needing:
        retry_db(variant.build.refresh_from_db if variant.build else lambda: None)


def _assign(variant: Variant, sources: Sources) -> None:
    variant.build = builds.named(sources, variant.build_options)
    variant.save(update_fields=["build"])


def _archive(build: Build, store: Path) -> Path:
    """Returns the packed sources of a build. Raises SourceError."""
    archive = archive_path(store, build.source_sha256)
    if not archive.exists():
        if problem := retry_db(lambda: packing.problem(build.source_sha256)):
            raise SourceError(f"the sources cannot be packed: {problem}")
        raise SourceError(
            f"packed sources {archive.name} are not in {archive.parent} of this controller: give all controllers the "
            "same directory by PERFWEB_SOURCES, or submit the run again"
        )
    return archive


def _build_once(build: Build, made: Callable[[], Mapping[str, Any]]) -> None:
    try:
        outcome = made()
    except PlayFailedError as failure:
        output = "\n".join(part.output for part in failure.result.failures) or failure.result.log
        retry_db(lambda: builds.failed(build, output))
        raise
    seconds = None if outcome["cached"] and build.seconds is not None else float(outcome["seconds"])
    retry_db(lambda: builds.succeeded(build, outcome["prefix"], outcome["build_log"], seconds))


def _measure(bench: Bench, variants: dict[str, Variant], beat: Heartbeat) -> list[str]:
    """Runs all boots in order, except those already measured or decided. Returns the early decisions as text."""
    planned = plan_boots(bench.plan, bench.run.seed)
    done = retry_db(lambda: _measured(bench.run))
    given_up = retry_db(lambda: worker_losses.given_up(bench.run))
    tried = (boot for boot in planned if boot.position not in given_up)
    ahead = [(boot, missing) for boot in tried if (missing := _missing(boot, done))]
    clock = _Clock(bench, planned)
    notes = []
    while ahead:
        beat.check()
        space.require()
        boot, missing = ahead[0]
        enough = retry_db(lambda boot=boot: settled(bench.run, bench.plan, planned, boot))  # type: ignore[misc]
        if enough:
            last = closing(planned, boot)
            spared = [other for other, _ in ahead if other.group == boot.group and other is not last]
            ahead = [entry for entry in ahead if entry[0] not in spared]
            notes.append(clock.spare(enough, spared))
            continue
        clock.publish_estimate([other for other, _ in ahead])
        good = run_boot(bench, variants[boot.variant], boot, missing)
        clock.spent.append(boot)
        del ahead[0]
        if not good:
            ahead = [entry for entry in ahead if not _is_futile(bench.plan, entry[0].variant, boot.variant)]
    clock.publish_estimate([])
    return notes


def _is_futile(plan: PlanSpec, variant: str, broken: str) -> bool:
    """Returns whether a boot of a variant is useless after `broken` has failed: nothing compares with a baseline that
    fails.
    """
    return broken in {variant, plan.baseline}


def _measured(run: Run) -> set[tuple[int, str]]:
    """Returns position and test of every successful measurement."""
    good = Measurement.objects.filter(boot__run=run, state=MeasurementState.OK)
    return set(good.values_list("boot__position", "test"))


def _missing(boot: PlannedBoot, done: set[tuple[int, str]]) -> list[PlannedMeasurement]:
    return [planned for planned in boot.measurements if (boot.position, planned.test.name) not in done]


class _Clock:
    """Publishes the next step and the estimated remaining time."""

    def __init__(self, bench: Bench, planned: Sequence[PlannedBoot]) -> None:
        self.number = bench.run.number
        self.plan = bench.plan
        self.total = len(planned)
        self.spent: list[PlannedBoot] = []
        self.began = time.monotonic()

    def publish_estimate(self, ahead: Sequence[PlannedBoot]) -> None:
        fraction = 1 - len(ahead) / self.total if self.total else 1.0
        progress.publish(self.number, "eta", seconds=round(self._seconds(ahead)), fraction=fraction)
        if ahead:
            boot = ahead[0]
            progress.publish(
                self.number, "boot", position=boot.position, boots=self.total, variant=boot.variant,
                topology=boot.topology, server=boot.server,
            )  # fmt: skip

    def spare(self, enough: Settled, spared: Sequence[PlannedBoot]) -> str:
        """Publishes that some boots are not needed, and returns the message."""
        seconds = self._seconds(spared)
        progress.publish(
            self.number, "decided", topology=enough.group[0], server=enough.group[1], boots=enough.blocks,
            planned=self.plan.boots, seconds=round(seconds),
            verdicts={f"{variant} {test}": verdict for (variant, test), verdict in enough.verdicts.items()},
        )  # fmt: skip
        return enough.words(self.plan.boots, seconds / 60)

    def _seconds(self, boots: Sequence[PlannedBoot]) -> float:
        expected = estimate(self.spent, self.plan.seconds)
        pace = (time.monotonic() - self.began) / expected if expected else 1.0
        return estimate(boots, self.plan.seconds) * pace


def _verdict(run: Run) -> Ending:
    """Returns "done" if anything was measured; each position and test counts once, by its last attempt."""
    latest = {
        (position, test): (state, reason)
        for position, test, state, reason in Measurement.objects.filter(boot__run=run)
        .order_by("boot__position", "boot__attempt")
        .values_list("boot__position", "test", "state", "reason")
    }
    bad = [(state, reason) for state, reason in latest.values() if state != MeasurementState.OK]
    if not bad:
        return Ending(states.finish, "")
    seen = {state for state, _ in bad}
    words = {MeasurementState.FAILED: "failed", MeasurementState.VOID: "are void"}
    how = " or ".join(words[state] for state in words if state in seen)
    first = f"the first: {bad[0][1]}"
    if len(bad) == len(latest):
        return Ending(states.fail, f"all {len(latest)} measurements {how}; {first}")
    return Ending(states.finish, f"{len(bad)} of {len(latest)} measurements {how}; {first}")
