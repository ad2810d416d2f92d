# SPDX-License-Identifier: BSD-2-Clause
"""Makes rows for tests.

`create_run()` makes a whole finished run, as a worker stores it; the same seed gives the same run.
"""

import hashlib
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from perfweb.accounts.models import Role as AccountRole
from perfweb.accounts.models import User
from perfweb.builds.models import Build, BuildState
from perfweb.lab.models import Host, Role, Testbed
from perfweb.lab.origins import Origin
from perfweb.runs.calibration import calibrate
from perfweb.runs.catalogue import SIMULATED_COSTS, TESTS, Test
from perfweb.runs.models import (
    Artefact,
    ArtefactKind,
    Boot,
    BootState,
    Direction,
    HostFacts,
    Measurement,
    MeasurementState,
    Plan,
    Run,
    RunState,
    RunTransition,
    Sample,
    Variant,
)
from perfweb.runs.summaries import summarise
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.tracking.models import Alert, AlertState, TrackedBranch

START = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
DEMO_TESTS = (
    "tcp.rr/host-host/ipv4",
    "udp.rr/host-host/ipv4",
    "tcp.stream/host-host/ipv4",
    "tcpconnect/host-host/ipv4",
    "tcp.rr/host-router-host/ipv4",
    "tcp.stream/host-router-host/ipv4",
)
PLAN_TEXT = """\
name: direct-or-deferred
title: Direct against deferred dispatch
baseline: deferred
variants:
  - name: deferred
    target: stack
    tunables: {net.isr.dispatch: deferred}
  - name: direct
    target: stack
    tunables: {net.isr.dispatch: direct}
"""
# Typical values of generated samples: (metric, mean, unit, direction).
TYPICAL = {
    "transactions": (42_000.0, "transactions/s", Direction.HIGHER),
    "throughput": (14e9, "bits/s", Direction.HIGHER),
    "connections": (9_000.0, "connections/s", Direction.HIGHER),
    "cpu": (150.0, "ns", Direction.LOWER),
    "packets": (600_000.0, "packets/s", Direction.HIGHER),
    "latency.p90.75": (60.0, "us", Direction.LOWER),
    "ndr": (400_000.0, "packets/s", Direction.HIGHER),
    "rounds": (90.0, "rounds/s", Direction.HIGHER),
    **{cost: (4_000.0, f"{cost}/kilobyte", Direction.LOWER) for cost in SIMULATED_COSTS},
}
HISTORY = (
    RunState.QUEUED,
    RunState.LEASED,
    RunState.PREPARING,
    RunState.BUILDING,
    RunState.RUNNING,
    RunState.RESTORING,
    RunState.DONE,
)


def create_testbed(name: str = "demo", *, origin: Origin = Origin.MEASURED) -> Testbed:
    testbed, made = Testbed.objects.get_or_create(
        name=name, defaults={"inventory": "playbooks/inventories/example.yml", "origin": origin}
    )
    if made:
        for number, role in enumerate(Role if origin == Origin.MEASURED else [Role.DUT], start=11):
            Host.objects.create(testbed=testbed, role=role, name=f"{name}-{role}", address=f"10.77.0.{number}")
    return testbed


def create_plan(
    text: str = PLAN_TEXT, name: str = "direct-or-deferred", title: str = "Direct against deferred dispatch"
) -> Plan:
    digest = hashlib.sha256(text.encode()).hexdigest()
    plan, _ = Plan.objects.get_or_create(sha256=digest, defaults={"name": name, "title": title, "text": text})
    return plan


def create_build(
    source: str = "source", revision: str = "v0.1-12-g0123abc", committed: datetime | None = None
) -> Build:
    digest = hashlib.sha256(source.encode()).hexdigest()
    key = digest[:32]
    build, _ = Build.objects.get_or_create(
        key=key,
        defaults={
            "source_sha256": digest,
            "revision": revision,
            "committed": committed,
            "options": ["-Dbuildtype=release"],
            "state": BuildState.READY,
            "prefix": f"/var/tmp/perfweb/builds/{key}/prefix",  # noqa: S108
            "log": "ninja: no work to do.\n",
            "seconds": 12.5,
        },
    )
    return build


def create_artefact(
    run: Run,
    name: str,
    text: str,
    kind: ArtefactKind = ArtefactKind.TOOL_OUTPUT,
    *,
    boot: Boot | None = None,
    measurement: Measurement | None = None,
) -> Artefact:
    artefact = Artefact(run=run, boot=boot, measurement=measurement, kind=kind, name=name, **_content(text))
    artefact.save()
    return artefact


def _content(text: str) -> dict[str, Any]:
    content = text.encode()
    return {"content": content, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def create_submission(state: SubmissionState = SubmissionState.WAITING, **fields: object) -> Submission:
    """A submission of a patch that does not apply."""
    author, _ = User.objects.get_or_create(username="author", defaults={"role": AccountRole.SUBMITTER})
    values = {
        "author": author,
        "title": "net: name five",
        "patch": b"--- a/stack/net/if.c\n+++ b/stack/net/if.c\n@@ -5 +5 @@\n-int line5;\n+int five;\n",
        "base": "a" * 40,
        "revision": "v0.1-12-g0123abc",
        "stages": [{"subject": "", "author": "", "files": [{"path": "stack/net/if.c", "added": 1, "removed": 1}]}],
        "plan": PLAN_TEXT,
        "testbed": create_testbed(),
        "seconds": 300,
        "state": state,
        **fields,
    }
    return Submission.objects.create(**values)


def create_queued_run(testbed: Testbed | None = None, state: RunState = RunState.QUEUED) -> Run:
    """A run without results, whose history is one row."""
    run = Run.objects.create(plan=create_plan(), testbed=testbed or create_testbed(), state=state, seed=1)
    RunTransition.objects.create(run=run, to_state=RunState.QUEUED)
    return run


def create_variants(run: Run, build: Build | None = None) -> list[Variant]:
    """The baseline `deferred` and `direct`."""
    return [
        Variant.objects.create(
            run=run,
            name=name,
            position=position,
            baseline=position == 0,
            target="stack",
            build_options=["-Dbuildtype=release"],
            tunables={"net.isr.dispatch": name, "debug.mpsafenet": "1"},
            build=build or create_build(),
        )
        for position, name in enumerate(("deferred", "direct"))
    ]


def create_run(
    *,
    tests: Sequence[str] = DEMO_TESTS,
    boots: int = 2,
    samples: int = 10,
    discard: int = 2,
    gain: float = 1.08,
    noise: float = 0.01,
    failed_test: str = "",
    seed: int = 1,
    build: Build | None = None,
    kernel: str = "6.1.0-28-amd64",
) -> Run:
    """A finished run with the variants `deferred` (baseline) and `direct`, which is `gain` times as fast.

    `samples` are per variant and test, spread over `boots` boots of each (variant, topology, server); each measurement
    begins with `discard` discarded ones.  `noise` is the relative standard deviation.  The measurements of
    `failed_test` on `direct` are failed ones without samples.
    """
    rng = random.Random(seed)
    run = create_queued_run()
    _walk_history(run)
    variants = create_variants(run, build)
    for role in Role:
        facts = {"kernel": kernel, "cpu": "Example CPU 3.0 GHz", "cpus": 2, "congestion_control": "cubic"}
        HostFacts.objects.create(run=run, role=role, name=f"demo-{role}", facts=facts)
    groups: dict[tuple[str, str], list[Test]] = {}
    for name in tests:
        test = TESTS[name]
        groups.setdefault((test.topology, test.server), []).append(test)
    position, rows = 0, list[_Row]()
    for (topology, server), members in groups.items():
        for round_number in range(boots):
            for variant in variants if round_number % 2 == 0 else reversed(variants):
                boot = _boot(run, variant, topology, server, position)
                rows += _rows_of_boot(boot)
                position += 1
                mean = gain if variant.name == "direct" else 1.0
                for test in members:
                    if test.name == failed_test and variant.name == "direct":
                        rows += _rows_of_failure(boot, test)
                    else:
                        rows += _rows_of_measurement(boot, test, samples // boots, discard, mean, noise, rng)
    _store(rows)
    return run


def create_calibrated(blocks: int = 8, boots: float = 0.03, samples: float = 0.005, layouts: float = 0.0) -> Run:
    """A run of one test on two equal variants. Boots and samples scatter by that share of the mean, and so do blocks
    with layouts.
    """
    run = create_run(tests=[], boots=0)
    run.variants.update(tunables={})
    rng = random.Random(2)
    of_layouts = [rng.gauss(0, layouts) if layouts else 0.0 for _ in range(blocks)]
    rows: list[_Row] = []
    for position, variant in enumerate([*run.variants.all()] * blocks):
        boot = _boot(run, variant, "host-host", "netserver", position)
        if layouts:
            boot.layout = 1 + position // 2
        level = rng.gauss(1.0, boots) + of_layouts[position // 2]
        rows += [*_rows_of_boot(boot), *_rows_of_measurement(boot, TESTS[DEMO_TESTS[0]], 4, 1, level, samples, rng)]
    _store(rows)
    calibrate(run.number)
    return run


def create_watched_run(
    tests: Sequence[str] = DEMO_TESTS[:2],
    *,
    order: str = "abbaabba",
    level: Callable[[float], float] = lambda share: 0.96**share,
    gain: float = 1.08,
) -> Run:
    """A finished run whose plan has a sentinel, the variant `deferred` (a), before and after each two boots of the
    order; `level` is the speed of the machine at a fraction of the run.
    """
    rng = random.Random(1)
    run = create_queued_run()
    run.plan = create_plan(f"{PLAN_TEXT}tests: [{', '.join(tests)}]\nsentinel: {{every: 2}}\n")
    _walk_history(run)
    variants = dict(zip("ab", create_variants(run), strict=True))
    planned = "".join(f"S{order[place : place + 2]}" for place in range(0, len(order), 2)) + "S"
    rows: list[_Row] = []
    for position, letter in enumerate(planned):
        variant, sentinel = variants.get(letter, variants["a"]), letter == "S"
        boot = _boot(run, variant, "host-host", "netserver", position, sentinel=sentinel)
        rows += _rows_of_boot(boot)
        mean = level(position / (len(planned) - 1)) * (gain if letter == "b" else 1.0)
        for test in tests:
            rows += _rows_of_measurement(boot, TESTS[test], 2 if sentinel else 5, 1, mean, 0.001, rng)
    _store(rows)
    summarise([run.pk])
    return run


def faster_later(share: float) -> float:
    """The level of a machine that gets faster by 5 % in the middle of a run."""
    return 1.05 if share > 0.5 else 1.0


def create_measurements(
    run: Run,
    tests: Sequence[str],
    noise: float,
    seed: int,
    level: Callable[[str, str], float] = lambda *_: 1.0,
    boots: int = 4,
) -> None:
    """Store the measurements of a queued run in some boots of each variant, and its end; `level` is the speed of a boot
    of a variant in a test, by their names.
    """
    rng, rows = random.Random(seed), list[_Row]()
    for position, variant in enumerate([*run.variants.all()] * boots):
        boot = _boot(run, variant, "host-host", "netserver", position)
        rows += _rows_of_boot(boot)
        for test in tests:
            rows += _rows_of_measurement(boot, TESTS[test], 4, 0, level(variant.name, test), noise, rng)
    _store(rows)
    _walk_history(run)


def create_history(commits: int, tests: Sequence[str] = DEMO_TESTS[:1], *, seed: int = 1) -> list[Run]:
    """Runs of as many commits, a day apart; from the middle on `direct` is slower and the hosts have another kernel."""
    runs = []
    for number in range(commits):
        late = number >= commits // 2
        committed = START - timedelta(days=commits - number)
        build = create_build(f"commit {number}", f"v0.1-{number}-g{number:07x}", committed)
        kernel = "6.1.0-29-amd64" if late else "6.1.0-28-amd64"
        gain = 1.02 if late else 1.08
        runs.append(create_run(tests=tests, gain=gain, seed=seed + number, build=build, kernel=kernel))
    summarise([run.pk for run in runs])
    return runs


def create_alert(runs: Sequence[Run], test: str = DEMO_TESTS[0], place: int = 1) -> Alert:
    """A confirmed alert about `direct` on a branch that the runs measured, one commit each; `place` is the culprit."""
    branch, made = TrackedBranch.objects.get_or_create(
        name="head", defaults={"plan": "", "testbed": runs[0].testbed, "since": f"{0:040x}"}
    )
    if made:
        for number, run in enumerate(runs):
            branch.commits.create(
                position=number, sha=f"{number:040x}", subject=f"net: change {number}", author="Ada", committed=START
            ).runs.add(run)
    commits = list(branch.commits.all())
    alert = Alert.objects.create(
        branch=branch, since=commits[0], until=commits[-1], culprit=commits[place], state=AlertState.CONFIRMED
    )
    alert.movements.create(variant="direct", test=test, better=False, suspected=-5.0)
    return alert


def create_knob_run(tests: Sequence[str] = DEMO_TESTS[:2], *, boots: int = 2, seed: int = 1) -> Run:
    """A run of four variants, all combinations of two knobs: direct dispatch gains 8 %, two CPUs gain 30 %, and both
    together another 5 %.
    """
    rng = random.Random(seed)
    run = create_queued_run()
    _walk_history(run)
    position, rows = 0, list[_Row]()
    for place, (dispatch, cpus) in enumerate(itertools.product(("deferred", "direct"), ("1", "2"))):
        variant = Variant.objects.create(
            run=run, name=f"{dispatch}-{cpus}", position=place, baseline=place == 0, target="stack",
            tunables={"net.isr.dispatch": dispatch, "machine.cpus": cpus}, build=create_build(),
        )  # fmt: skip
        mean = 1.08 ** (dispatch == "direct") * 1.3 ** (cpus == "2") * 1.05 ** (place == 3)
        for _ in range(boots):
            boot = _boot(run, variant, "host-host", "netserver", position)
            rows += _rows_of_boot(boot)
            position += 1
            for name in tests:
                rows += _rows_of_measurement(boot, TESTS[name], 10, 0, mean, 0.005, rng)
    _store(rows)
    return run


_Row = Boot | Measurement | Sample | Artefact


def _store(rows: Sequence[_Row]) -> None:
    """Insert the rows of each table at once: one by one they would take most of the time of many tests."""
    for model in (Boot, Measurement, Sample, Artefact):
        chosen: list[Any] = [row for row in rows if isinstance(row, model)]
        model._default_manager.bulk_create(chosen)


def create_boot(
    run: Run, variant: Variant, topology: str, server: str, position: int, *, sentinel: bool = False
) -> Boot:
    boot = _boot(run, variant, topology, server, position, sentinel=sentinel)
    _store([*_rows_of_boot(boot)])
    return boot


def _boot(run: Run, variant: Variant, topology: str, server: str, position: int, *, sentinel: bool = False) -> Boot:
    started = START + timedelta(seconds=20 * position)
    return Boot(
        run=run,
        variant=variant,
        topology=topology,
        server=server,
        position=position,
        sentinel=sentinel,
        state=BootState.STOPPED,
        effective_tunables={**variant.tunables, "machine.cpus": "1"},
        command=f"bootstack -c loader.conf -- {server} -D -4 -f",
        started=started,
        ended=started + timedelta(seconds=15),
    )


def _rows_of_boot(boot: Boot) -> Iterator[_Row]:
    yield boot
    run, position, name = boot.run, boot.position, boot.variant.name
    tunables = "".join(f"{tunable}: {value}\n" for tunable, value in boot.effective_tunables.items())
    queued = 90_000 + position if name == "deferred" else 12
    counters = f"net.isr.dispatched: {100_000 + position}\nnet.isr.queued: {queued}\nnet.isr.dispatch: {name}\n"
    for file, text, kind in (
        ("boot.log", "stack: 1 CPU\nstack: up\n", ArtefactKind.BOOT_LOG),
        ("tunables.txt", tunables, ArtefactKind.TUNABLES),
        ("counters-sysctl.txt", counters, ArtefactKind.COUNTERS),
    ):
        path = f"boots/{position:03d}-{name}/{file}"
        yield Artefact(run=run, boot=boot, kind=kind, name=path, **_content(text))


def create_measurement(
    boot: Boot, test: Test, samples: int, discard: int, mean: float, noise: float, rng: random.Random
) -> Measurement:
    """A good measurement whose samples scatter normally around `mean` times the typical value of its metric."""
    measurement, *others = _rows_of_measurement(boot, test, samples, discard, mean, noise, rng)
    _store([measurement, *others])
    assert isinstance(measurement, Measurement)
    return measurement


def _rows_of_measurement(
    boot: Boot, test: Test, samples: int, discard: int, mean: float, noise: float, rng: random.Random
) -> Iterator[_Row]:
    measurement = _measurement(boot, test, MeasurementState.OK, "", float(samples + discard))
    typical, unit, direction = TYPICAL[test.measure.metric]
    drawn = [
        Sample(
            measurement=measurement,
            index=index,
            metric=test.measure.metric,
            unit=unit,
            direction=direction,
            value=round(typical * mean * rng.gauss(1.0, noise), 2),
            discarded=index < discard,
            seconds=1.0,
        )
        for index in range(samples + discard)
    ]
    if test.measure.metric == "transactions":
        drawn += [
            Sample(
                measurement=measurement,
                index=sample.index,
                metric="latency.p99",
                unit="us",
                seconds=1.0,
                direction=Direction.LOWER,
                value=round(2e6 / sample.value, 2),
                discarded=sample.discarded,
            )
            for sample in drawn
        ]
    printed = _connected if test.measure.tool == "tcpconnect" else "THROUGHPUT={0.value}\n".format
    yield measurement
    yield from drawn
    yield _tool_output(measurement, "".join(map(printed, drawn)))


def _connected(sample: Sample) -> str:
    """The stored output of a sample of tcpconnect: a histogram with most connections a little faster than the mean."""
    place = math.floor(16 * math.log2(1e6 / sample.value)) - 3
    bounds = [2 ** ((place + step) / 16) for step in range(9)]
    counts = [sample.value * share / 100 for share in (1, 30, 40, 12, 8, 5, 3, 1)]
    lines = [
        f"took {low:.3f} to {high:.3f} us: {count:.0f}\n"
        for (low, high), count in zip(itertools.pairwise(bounds), counts, strict=True)
    ]
    rate = f"connections: {sample.value:.0f} seconds: 1.000 rate: {sample.value:.1f} connections/s\n"
    head = f"== sample {sample.index}: 2026-11-21T09:00:00.000+00:00, 1.000 s, status 0\n-- stdout\n"
    return head + rate + "".join(lines)


def make_void(measurement: Measurement, index: int, reason: str) -> None:
    """Make a gate fire for one sample of a measurement."""
    measurement.samples.filter(index=index).update(void=reason)
    measurement.voids += 1
    measurement.save()


def create_failed_measurement(boot: Boot, test: Test) -> Measurement:
    measurement, *others = _rows_of_failure(boot, test)
    _store([measurement, *others])
    assert isinstance(measurement, Measurement)
    return measurement


def _rows_of_failure(boot: Boot, test: Test) -> Iterator[_Row]:
    measurement = _measurement(boot, test, MeasurementState.FAILED, "sample 0: netperf ended with status 1", 0.1)
    yield measurement
    yield _tool_output(measurement, "establish control: are you sure there is a netserver listening?\n")


def _measurement(boot: Boot, test: Test, state: MeasurementState, reason: str, seconds: float) -> Measurement:
    return Measurement(
        boot=boot,
        test=test.name,
        tool=test.measure.tool,
        metric=test.measure.metric,
        command=f"{test.measure.tool} -H 10.77.1.2 -l 1",
        pinning={"client": "0", "server": "1"},
        state=state,
        reason=reason,
        environment={"controller_load": [0.5, 0.4, 0.3]},
        started=boot.started,
        seconds=seconds,
    )


def _tool_output(measurement: Measurement, text: str) -> Artefact:
    boot = measurement.boot
    name = f"boots/{boot.position:03d}-{boot.variant.name}/{measurement.test.replace('/', '_')}.txt"
    kind = ArtefactKind.TOOL_OUTPUT
    return Artefact(run=boot.run, boot=boot, measurement=measurement, kind=kind, name=name, **_content(text))


def _walk_history(run: Run) -> None:
    steps = [RunTransition(run=run, from_state=before, to_state=after) for before, after in itertools.pairwise(HISTORY)]
    RunTransition.objects.bulk_create(steps)
    run.state = RunState.DONE
    run.started, run.ended = START, START + timedelta(minutes=4)
    run.save()
