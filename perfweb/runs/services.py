# SPDX-License-Identifier: BSD-2-Clause
"""Actions on runs: submit, cancel, resume."""

import hashlib
import logging
import secrets
from collections.abc import Mapping

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerError

from perfweb.builds import services as builds
from perfweb.builds.models import Build
from perfweb.builds.sources import Sources
from perfweb.lab import services as lab
from perfweb.lab.models import Lease, Testbed
from perfweb.lab.origins import Origin
from perfweb.runs import queue, states
from perfweb.runs.budget import within_budget
from perfweb.runs.models import Artefact, ArtefactKind, Plan, Priority, Run, RunState, Variant
from perfweb.runs.planfile import DEPLOYED, PlanSpec, SizeError, VariantSpec, read_plan

log = logging.getLogger(__name__)

EXECUTE_TASK = "runners.tasks.execute"
NO_SOURCES: Mapping[str, Sources] = {}


class RunError(ValueError):
    """The action is not possible now; the message has the reason and what to do."""


class OriginError(RunError):
    """Results of the testbed have the origin `had`, and those of the plan's tests another one."""

    def __init__(self, had: Origin, message: str) -> None:
        super().__init__(message)
        self.had = had


def submit(
    text: str,
    testbed_name: str,
    requested_by: str = "",
    seed: int | None = None,
    sources: Mapping[str, Sources] = NO_SOURCES,
    patch: bytes = b"",
    priority: Priority = Priority.NORMAL,
) -> Run:
    """Queues a run of the plan `text` on a testbed; another run's `seed` repeats its random order.

    `sources` are packed sources by their names in the plan; the `patch` of some of them is stored. Boots and samples of
    a plan with a budget are chosen here. Raises PlanError, or RunError for an unknown or unsuitable testbed, a seed
    that is out of range, a missing source, or a budget that is too short.
    """
    spec = read_plan(text)
    testbed = testbed_for(spec, testbed_name)
    if spec.budget is not None:
        text = _within_budget(text, testbed)
        spec = read_plan(text)
    if seed is None:
        seed = secrets.randbelow(2**31)
    if not 0 <= seed < 2**31:
        raise RunError(f"{seed} is no seed: it lies between 0 and {2**31 - 1}")
    with transaction.atomic():
        run = Run.objects.create(
            plan=keep_plan(text, spec.name, spec.title), testbed=testbed, seed=seed, requested_by=requested_by,
            priority=priority,
        )  # fmt: skip
        _create_variants(run, spec, sources)
        if patch:
            _keep_patch(run, patch)
        states.created(run)
        transaction.on_commit(lambda: enqueue(run))
    return run


def _within_budget(text: str, testbed: Testbed) -> str:
    try:
        return within_budget(text, testbed)
    except SizeError as error:
        raise RunError(str(error)) from None


def find_testbed(testbed_name: str) -> Testbed:
    """Return the testbed of this name, if plans can be measured on it. Raises RunError."""
    testbed = Testbed.objects.filter(name=testbed_name).first()
    if testbed is None:
        real = Testbed.objects.filter(sample="").values_list("name", flat=True)
        known = ", ".join(real) or "none; use manage.py register_testbed"
        raise RunError(f"there is no testbed {testbed_name!r}; registered: {known}")
    if testbed.sample:
        raise RunError(f"testbed {testbed_name!r} holds samples, and measures nothing: use another testbed")
    if not testbed.inventory:
        raise RunError(f"testbed {testbed_name!r} has imported results only: manage.py register_testbed makes it real")
    return testbed


def testbed_for(spec: PlanSpec, testbed_name: str) -> Testbed:
    """Return the testbed of this name, if it suits this plan: its results have the origin of the plan's tests, and
    it has to allow words for its kernel's command line. Raises RunError.
    """
    testbed = find_testbed(testbed_name)
    if why := spec.words_problem(testbed.command_line_words):
        raise RunError(f"testbed {testbed} does not allow {why}")
    if testbed.origin == spec.origin:
        return testbed
    others = Testbed.objects.filter(origin=spec.origin).exclude(inventory="").values_list("name", flat=True)
    known = ", ".join(others) or "none; use manage.py register_testbed"
    had = Origin(testbed.origin)
    raise OriginError(
        had,
        f"testbed {testbed} {had.verb}s, and the tests are {spec.origin.value}; "
        f"testbeds that {spec.origin.verb}: {known}",
    )


def keep_plan(text: str, name: str, title: str) -> Plan:
    """Return the plan with this text; store it if it is new."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    plan, _ = Plan.objects.get_or_create(sha256=digest, defaults={"name": name, "title": title, "text": text})
    return plan


def _create_variants(run: Run, spec: PlanSpec, sources: Mapping[str, Sources]) -> None:
    Variant.objects.bulk_create(
        Variant(
            run=run,
            name=variant.name,
            position=position,
            baseline=variant.name == spec.baseline,
            target=variant.target,
            build_options=list(variant.build_options),
            tunables=variant.tunables,
            build=_build_of(variant, sources),
        )
        for position, variant in enumerate(spec.variants)
    )


def _build_of(variant: VariantSpec, sources: Mapping[str, Sources]) -> Build | None:
    """Return the build of a given source; the build of the deployed stack gets its name at the start of the run."""
    if variant.source == DEPLOYED:
        return None
    if variant.source not in sources:
        had = ", ".join(sources) or "none: it came with no patch, and of no tracked branch"
        raise RunError(f"variant {variant.name} is built from the source “{variant.source}”; the run has {had}")
    return builds.named(sources[variant.source], variant.build_options)


def _keep_patch(run: Run, text: bytes) -> None:
    """Store the patch, so that the run's page and its replay bundle have it."""
    digest = hashlib.sha256(text).hexdigest()
    Artefact.objects.create(
        run=run, kind=ArtefactKind.PATCH, name="patch.mbox", content=text, size=len(text), sha256=digest
    )


def cancel(number: int, by: str = "") -> Run:
    """Ends a queued run at once, and requests the end of a running one. Raises RunError if the run is over."""
    reason = f"cancelled by {by}" if by else "cancelled"
    with transaction.atomic():
        run = get(number, lock=True)
        if run.state in states.ACTIVE:
            run.cancel_requested = True
            run.save(update_fields=["cancel_requested"])
            return run
        if run.state not in {RunState.QUEUED, RunState.PAUSED, RunState.INTERRUPTED}:
            raise RunError(f"run {number} is {run.state} already")
        return states.cancel(number, reason)


def resume(number: int) -> Run:
    """Queues an interrupted or failed run again; its results are kept.  Raises RunError otherwise."""
    with transaction.atomic():
        run = get(number, lock=True)
        if run.state not in {RunState.PAUSED, RunState.INTERRUPTED, RunState.FAILED}:
            raise RunError(f"run {number} is {run.state}; only a paused, interrupted or failed run can be resumed")
        run = states.requeue(number, "resumed")
        transaction.on_commit(lambda: enqueue(run))
        return run


@transaction.atomic
def free(testbed_name: str) -> Lease:
    """Ends the lease of a testbed that cannot be restored, or whose holder is gone.  Raises RunError.

    A holder that comes back finds its lease lost and leaves the testbed alone.
    """
    lease = Lease.objects.filter(testbed__name=testbed_name, released__isnull=True).first()
    if lease is None:
        raise RunError(f"no run holds a testbed {testbed_name!r}")
    run = Run.objects.select_for_update().filter(lease=lease).first()
    lease.refresh_from_db()
    if not lease.problem and not lab.expired().filter(pk=lease.pk).exists():
        raise RunError(f"{lease}, whose worker lives: cancel the run, or wait until {lease.expires:%H:%M:%S} UTC")
    if run is not None and run.state in states.ACTIVE:
        states.interrupt(run.number, "the worker gave no sign of life, and its testbed was freed by hand")
    lab.release(lease)
    return lease


def prioritise(number: int, priority: Priority) -> Run:
    """Moves a queued run before others, or after them. Raises RunError if it is not queued."""
    with transaction.atomic():
        run = get(number, lock=True)
        if run.state != RunState.QUEUED:
            raise RunError(f"run {number} is {run.state}; only a run that waits has a priority")
        run.priority = priority
        run.save(update_fields=["priority"])
        return run


def get(number: int, *, lock: bool = False) -> Run:
    """Return run `number`. Raises RunError if there is none."""
    runs = Run.objects.select_for_update() if lock else Run.objects.all()
    run = runs.filter(number=number).first()
    if run is None:
        raise RunError(f"there is no run {number}")
    return run


def enqueue(run: Run) -> None:
    """Notifies a worker of the testbed's lab.  Without a broker nothing is lost, because beat polls the queue."""
    try:
        current_app.send_task(EXECUTE_TASK, [run.number], queue=run.testbed.queue, retry=False)
    except (BrokerError, OSError):
        log.warning("run %d is queued, but Redis does not answer: it starts when Redis is back", run.number)


def dispatch(lab: str | None = None) -> None:
    """Notifies the workers of one lab or of all about the next run of each free testbed."""
    for run in queue.next_runs(lab):
        enqueue(run)
