# SPDX-License-Identifier: BSD-2-Clause
"""Fills an empty database with years of generated results, through COPY: the same seed gives the same rows.

Every commit is measured by five plans on two testbeds. A plan has six variants and four tests, a variant two boots, and
a measurement ten samples after one of warm-up: 528 samples for each run.
"""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from django.db import connection, connections, transaction

from perfweb.builds.models import Build
from perfweb.lab.models import Host, Role, Testbed
from perfweb.runs.bulk import copy_rows
from perfweb.runs.catalogue import TESTS
from perfweb.runs.models import Boot, HostFacts, Measurement, Plan, Run, RunTransition, Sample, Variant
from perfweb.runs.summaries import RUNS_AT_ONCE, summarise
from tests.factories import TYPICAL

FIRST_COMMIT = datetime(2021, 1, 1, tzinfo=UTC)
TESTBEDS, PLANS, VARIANTS, BOOTS, TESTS_OF_PLAN, SAMPLES = 2, 5, 6, 2, 4, 11
SAMPLES_OF_RUN = VARIANTS * BOOTS * TESTS_OF_PLAN * SAMPLES
WIDE_TESTS, WIDE_VARIANTS = 100, 7
"""Size of the one large run, for its page and the comparison of a hundred tests."""

_COMMITS_AT_ONCE = 20
_PROCESSES = 2


@dataclass
class Keys:
    """The next free key of each table that is filled with explicit keys."""

    run: int = 1
    variant: int = 1
    boot: int = 1
    measurement: int = 1
    sample: int = 1


def generate(commits: int, seed: int = 1) -> Iterator[str]:
    """Make the results of `commits` commits, and print the progress now and then."""
    rng = np.random.default_rng(seed)
    keys = Keys()
    plans = _plans()
    for number in range(TESTBEDS):
        testbed = Testbed.objects.create(pk=number + 1, name=f"lab{number + 1}", inventory="inventory.yml")
        for role in Role:
            Host.objects.create(testbed=testbed, role=role, name=f"lab{number + 1}-{role}", address="10.0.0.1")
    for first in range(0, commits, _COMMITS_AT_ONCE):
        _commits(range(first, min(first + _COMMITS_AT_ONCE, commits)), plans, keys, rng)
        if first // _COMMITS_AT_ONCE % 10 == 9:
            yield f"{keys.sample - 1} samples of {first + _COMMITS_AT_ONCE} commits"
    _wide_run(keys, rng)
    _set_sequences()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    yield f"{keys.sample - 1} samples of {keys.run} runs"
    for done in _summaries(keys.run):
        yield f"summaries of {done} runs"
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE runs_summary")


def _summaries(runs: int) -> Iterator[int]:
    """Summarise and judge all runs, in two processes, and print the progress now and then."""
    parts = [range(first, min(first + RUNS_AT_ONCE, runs + 1)) for first in range(1, runs + 1, RUNS_AT_ONCE)]
    connections.close_all()  # which the processes would share
    fork, quietly = multiprocessing.get_context("fork"), (signal.SIGINT, signal.SIG_DFL)  # Ctrl-C: without a traceback
    with ProcessPoolExecutor(_PROCESSES, fork, signal.signal, quietly) as workers:
        for number, _ in enumerate(workers.map(summarise, parts), start=1):
            if number % 10 == 0 or number == len(parts):
                yield min(number * RUNS_AT_ONCE, runs)


def _plans() -> list[list[str]]:
    """The tests of each plan; the catalogue is cut into pieces, from the start again when it is used up."""
    names = itertools.cycle(TESTS)
    plans = []
    for number in range(PLANS + 1):
        text = f"name: plan{number + 1}\ntitle: Dispatch and queues, part {number + 1}\n"
        digest = hashlib.sha256(text.encode()).hexdigest()
        title = f"Dispatch and queues, part {number + 1}"
        Plan.objects.create(pk=number + 1, name=f"plan{number + 1}", title=title, text=text, sha256=digest)
        plans.append(list(itertools.islice(names, TESTS_OF_PLAN)))
    return plans[:PLANS]


@transaction.atomic
def _commits(numbers: Sequence[int], plans: list[list[str]], keys: Keys, rng: np.random.Generator) -> None:
    builds, runs, variants, boots, facts, history = [], [], [], [], [], []
    for number in numbers:
        at = FIRST_COMMIT + timedelta(hours=20 * number)
        builds.append(_build(number, at))
        for testbed, plan in itertools.product(range(TESTBEDS), range(PLANS)):
            run = Run(
                pk=keys.run, plan_id=plan + 1, testbed_id=testbed + 1, state="done", created=at, started=at,
                ended=at + timedelta(minutes=20),
            )  # fmt: skip
            runs.append(run)
            history += [RunTransition(run=run, at=at, to_state=state) for state in ("queued", "running", "done")]
            kernel = f"6.1.0-{number // 400}-amd64"
            facts += [
                HostFacts(run=run, role=role, name=f"lab{testbed + 1}-{role}", facts={"kernel": kernel, "cpus": 4})
                for role in Role
            ]
            for position in range(VARIANTS):
                variants.append(_variant(keys.variant, run, position, number + 1))
                places = (again * VARIANTS + position for again in range(BOOTS))
                boots += [_boot(keys.boot + again, run, keys.variant, place, at) for again, place in enumerate(places)]
                keys.variant += 1
                keys.boot += BOOTS
            keys.run += 1
    for rows in (builds, runs, variants, boots, facts, history):
        copy_rows(rows)
    of_run = {run.pk: plans[run.plan_id - 1] for run in runs}
    first = keys.measurement
    copy_rows(_measurements(boots, of_run, keys))
    _copy_samples(boots, of_run, first, keys, _fast(variants), rng)


def _build(number: int, at: datetime) -> Build:
    key = hashlib.sha256(str(number).encode()).hexdigest()
    return Build(
        pk=number + 1, key=key[:32], source_sha256=key, revision=f"v1.0-{number}-g{key[:7]}", committed=at,
        state="ready", prefix="/opt/stack", created=at,
    )  # fmt: skip


def _variant(key: int, run: Run, position: int, build: int | None) -> Variant:
    dispatch, cpus = ("deferred", "direct")[position % 2], str(2 ** (position // 2))
    return Variant(
        pk=key, run=run, name=f"{dispatch}-{cpus}", position=position, baseline=position == 0, target="stack",
        tunables={"net.isr.dispatch": dispatch, "machine.cpus": cpus}, build_id=build,
    )  # fmt: skip


def _fast(variants: Iterable[Variant]) -> set[int]:
    """The keys of the variants with direct dispatch, which is made four percent faster."""
    return {variant.pk for variant in variants if variant.tunables["net.isr.dispatch"] == "direct"}


def _boot(key: int, run: Run, variant: int, position: int, at: datetime) -> Boot:
    return Boot(
        pk=key, run=run, variant_id=variant, topology="host-host", server="netserver", state="stopped",
        position=position, command="bootstack -c loader.conf -- netserver -D", started=at,
        ended=at + timedelta(seconds=60),
    )  # fmt: skip


def _measurements(boots: Iterable[Boot], tests: dict[int, list[str]], keys: Keys) -> Iterator[Measurement]:
    for boot in boots:
        for name in tests[boot.run_id]:
            measure = TESTS[name.partition("#")[0]].measure
            yield Measurement(
                pk=keys.measurement, boot=boot, test=name, tool=measure.tool, metric=measure.metric,
                command=f"{measure.tool} -H 10.77.1.2 -l 1", pinning={"client": "0"}, state="ok",
                started=boot.started, seconds=float(SAMPLES),
            )  # fmt: skip
            keys.measurement += 1


def _copy_samples(
    boots: Sequence[Boot],
    tests: dict[int, list[str]],
    first: int,
    keys: Keys,
    fast: set[int],
    rng: np.random.Generator,
) -> None:
    """One block of lines for each measurement, because rows as objects would take most of the time."""
    columns = "id, measurement_id, index, metric, value, unit, direction, discarded, seconds"
    measurement = first
    with connection.cursor() as cursor, cursor.copy(f"COPY {Sample._meta.db_table} ({columns}) FROM STDIN") as copy:
        for boot in boots:
            gain = 1 + 0.04 * (boot.variant_id in fast) + 0.00001 * boot.run_id
            for name in tests[boot.run_id]:
                metric = TESTS[name.partition("#")[0]].measure.metric
                typical, unit, direction = TYPICAL[metric]
                values = typical * gain * (1 + 0.003 * rng.standard_normal() + 0.01 * rng.standard_normal(SAMPLES))
                copy.write(
                    "".join(
                        f"{keys.sample + index}\t{measurement}\t{index}\t{metric}\t{value:.1f}\t{unit}\t{direction}"
                        f"\t{'t' if index == 0 else 'f'}\t1\n"
                        for index, value in enumerate(values.tolist())
                    )
                )
                keys.sample += SAMPLES
                measurement += 1


@transaction.atomic
def _wide_run(keys: Keys, rng: np.random.Generator) -> None:
    """A run of seven variants with a hundred tests; a test of the catalogue with a number makes another one."""
    at = FIRST_COMMIT - timedelta(days=1)
    run = Run(pk=keys.run, plan_id=PLANS + 1, testbed_id=1, state="done", created=at, started=at, ended=at)
    variants = [_variant(keys.variant + position, run, position, None) for position in range(WIDE_VARIANTS)]
    boots = [
        _boot(keys.boot + place, run, variants[place % WIDE_VARIANTS].pk, place, at)
        for place in range(BOOTS * WIDE_VARIANTS)
    ]
    names = [f"{name}#{number}" for number in range(1 + WIDE_TESTS // len(TESTS)) for name in TESTS][:WIDE_TESTS]
    for rows in ([run], variants, boots):
        copy_rows(rows)
    first = keys.measurement
    copy_rows(_measurements(boots, {run.pk: names}, keys))
    _copy_samples(boots, {run.pk: names}, first, keys, _fast(variants), rng)


def _set_sequences() -> None:
    """Let rows that are saved in the ordinary way later have keys after those that were written here."""
    with connection.cursor() as cursor:
        for model in (Testbed, Plan, Build, Run, Variant, Boot, Measurement, Sample):
            key, table = model._meta.pk.column, model._meta.db_table
            last = model._default_manager.order_by("-pk").values_list("pk", flat=True)[0]
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, %s), %s)", [table, key, last])
