# SPDX-License-Identifier: BSD-2-Clause
"""Writes the progress and results of a run into the database. Each function is one transaction and safe to repeat."""

import hashlib
import json
import logging
import math
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from perfweb.lab.models import Role
from perfweb.measuring import tools
from perfweb.measuring.planner import PlannedBoot
from perfweb.measuring.raw import RawMeasurement, RawSample
from perfweb.plaintext import plain, storable
from perfweb.runs.bulk import copy_samples
from perfweb.runs.catalogue import TESTS, Measure, Test
from perfweb.runs.models import (
    Artefact,
    ArtefactKind,
    Boot,
    BootState,
    Direction,
    HostFacts,
    Measurement,
    MeasurementState,
    Run,
    Sample,
    Variant,
)
from playbooks.module_utils.gauges import UNITS

log = logging.getLogger(__name__)

LONGEST_ARTEFACT = 8 * 1024 * 1024
SMALLEST, LARGEST = 1e-30, 1e30
"""Bounds of a nonzero sample. Statistics square and divide samples, and a double ends at 1.8e308."""


def host_facts(run: Run, facts: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the facts by host name from the play `prepare`; they replace those of an earlier attempt."""
    for name, values in facts.items():
        role = values.get("group")
        if role in Role.values:
            HostFacts.objects.update_or_create(
                run=run, role=role, defaults={"name": name, "facts": storable(dict(values))}
            )


@transaction.atomic
def boot_started(
    run: Run, variant: Variant, planned: PlannedBoot, layout: int | None = None, seed: int | None = None
) -> Boot:
    """Store a new attempt at the boot of a position."""
    position = planned.position
    earlier = Boot.objects.filter(run=run, position=position).count()
    return Boot.objects.create(
        run=run, variant=variant, topology=planned.topology, server=planned.server, position=position,
        attempt=earlier + 1, layout=layout, seed=seed, sentinel=planned.sentinel, started=timezone.now(),
    )  # fmt: skip


@transaction.atomic
def boot_up(boot: Boot, outcome: Mapping[str, Any], effective: Mapping[str, str]) -> None:
    commands = outcome.get("commands", {})
    boot.command = storable("\n".join(shlex.join(map(str, words)) for words in commands.values()))
    boot.effective_tunables = storable(dict(effective))
    boot.state = BootState.UP
    boot.save()
    artefact(boot, ArtefactKind.BOOT_LOG, "boot.log", str(outcome.get("boot_log", "")))
    artefact(boot, ArtefactKind.TUNABLES, "loader.conf", str(outcome.get("loader_conf", "")))
    tunables = "".join(f"{name}: {value}\n" for name, value in effective.items())
    artefact(boot, ArtefactKind.TUNABLES, "tunables.txt", tunables)


@transaction.atomic
def boot_ended(
    boot: Boot, state: BootState, error: str = "", log: str = "", consoles: Mapping[str, str] | None = None
) -> None:
    """Store the end of a boot; `log` is its whole output, and replaces that of its start; `consoles` by host."""
    boot.state, boot.error, boot.ended = state, plain(error), timezone.now()
    boot.save()
    artefact(boot, ArtefactKind.BOOT_LOG, "boot.log", log)
    for host, text in (consoles or {}).items():
        artefact(boot, ArtefactKind.BOOT_LOG, f"console-{host}.log", text)


@transaction.atomic
def counters(boot: Boot, views: Mapping[str, str]) -> None:
    for name, text in views.items():
        artefact(boot, ArtefactKind.COUNTERS, f"counters-{name}.txt", text)


@transaction.atomic
def debugger(boot: Boot, threads: str) -> None:
    """Store the threads of a stack that seems to hang, from the stack or its host; replaces an earlier list."""
    artefact(boot, ArtefactKind.BOOT_LOG, "debugger.txt", threads)


def artefact(boot: Boot, kind: ArtefactKind, name: str, text: str, measurement: Measurement | None = None) -> None:
    """Store a text of a boot, unless it is empty."""
    if not text:
        return
    Artefact.objects.update_or_create(
        run_id=boot.run_id,
        name=f"{boot_folder(boot)}/{name}",
        defaults={"boot": boot, "measurement": measurement, "kind": kind, **kept(text)},
    )


def kept(text: str) -> dict[str, Any]:
    """Return the fields of an artefact with a text; a huge one is cut in the middle, with a note."""
    content = _shortened(text.encode("utf-8", "replace"))
    return {"content": content, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def boot_folder(boot: Boot) -> str:
    """Return the path of a boot's artefacts in the archive of its run."""
    again = f"-{boot.attempt}" if boot.attempt > 1 else ""
    return f"boots/{boot.position:03d}-{boot.variant.name}{again}"


def _shortened(content: bytes) -> bytes:
    if len(content) <= LONGEST_ARTEFACT:
        return content
    half = LONGEST_ARTEFACT // 2
    note = f"\n[{len(content) - 2 * half} bytes left out]\n".encode()
    return content[:half] + note + content[-half:]


@transaction.atomic
def measurement(raw: RawMeasurement) -> Measurement:
    """Parse the tool's output and store it with the samples; does nothing if that was done before.

    A measurement comes from untrusted programs. An invalid one is stored as failed, with its raw output. Raises
    KeyError for an unknown test, Boot.DoesNotExist for a deleted boot, and Django's errors when the database does not
    answer.
    """
    # Locked, so that two processes that empty the spool at the same time do not both find it missing.
    boot = Boot.objects.select_for_update(of=("self",)).select_related("variant").get(pk=raw.boot)
    test = TESTS[raw.test]
    if done := Measurement.objects.filter(boot=boot, test=test.name).first():
        return done
    try:
        with transaction.atomic():
            return _measured(boot, test, raw)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.exception("%s on %s cannot be stored", test.name, boot)
        return _unstorable(boot, test, raw, error)


def _measured(boot: Boot, test: Test, raw: RawMeasurement) -> Measurement:
    samples = raw.samples
    readings = [_read(test.measure, sample) for sample in samples]
    voids = [
        plain(sample.void) or (tools.stalled(values) if index >= raw.discard else "")
        for index, (sample, (values, _)) in enumerate(zip(samples, readings, strict=True))
    ]
    interim = [_interim(test.measure, sample) for sample in samples]
    started = (sample.started for sample in samples if not sample.malformed)
    state, reason = _state(raw, [problem for _, problem in readings], voids)
    made = Measurement.objects.create(
        boot=boot,
        test=test.name,
        tool=test.measure.tool,
        metric=test.measure.metric,
        command=storable(shlex.join(raw.argv)),
        pinning=storable(raw.pinning),
        state=state,
        reason=reason,
        environment=storable(raw.environment),
        gauges=[storable(sample.gauges) for sample in samples],
        interim=interim if any(interim) else [],
        voids=sum(map(bool, voids)),
        started=datetime.fromtimestamp(next(started, raw.time), UTC),
        seconds=sum(sample.seconds for sample in samples),
    )
    copy_samples(
        (
            made.pk, index, value.metric, value.value, value.unit, value.direction, index < raw.discard,
            samples[index].seconds, voids[index],
        )
        for index, (values, _) in enumerate(readings)
        for value in values
    )  # fmt: skip
    text = "".join(map(_shown, range(len(samples)), samples, voids))
    artefact(boot, ArtefactKind.TOOL_OUTPUT, _output_name(test), text, made)
    return made


def _unstorable(boot: Boot, test: Test, raw: RawMeasurement, error: Exception) -> Measurement:
    """Store a failed measurement, with the original data, for one that does not fit the database."""
    made = Measurement.objects.create(
        boot=boot, test=test.name, tool=test.measure.tool, metric=test.measure.metric, command="",
        state=MeasurementState.FAILED, reason=plain(f"the result cannot be stored: {error!r}"),
        started=timezone.now(), seconds=0.0,
    )  # fmt: skip
    text = json.dumps(raw.document(), indent=1, default=repr)
    artefact(boot, ArtefactKind.TOOL_OUTPUT, _output_name(test), text, made)
    return made


def _output_name(test: Test) -> str:
    return f"{test.name.replace('/', '_')}.txt"


def _failure(measure: Measure, sample: RawSample) -> str:
    """Return why a sample cannot have values, or an empty text."""
    if sample.malformed:
        return f"its host sent what is no sample: {sample.malformed[:200]}"
    last = (sample.stderr.strip() or sample.stdout.strip()).rsplit("\n", 1)[-1][:200]
    details = f": {last}" if last else ""
    if sample.timed_out:
        return f"{measure.tool} did not end in time{details}"
    return f"{measure.tool} ended with status {sample.rc}{details}" if sample.rc != 0 else ""


def _read(measure: Measure, sample: RawSample) -> tuple[list[tools.Value], str]:
    """Return the values in one sample's output, or why there are none."""
    if failure := _failure(measure, sample):
        return [], failure
    try:
        values = tools.parse(measure, sample.stdout)
    except tools.ToolError as error:
        return [], str(error)
    except Exception as error:
        log.exception("the parser of %s failed", measure.tool)
        return [], f"{measure.tool} printed unreadable output: {error!r}"
    if wrong := next(filter(None, map(_wrong, values)), ""):
        return [], f"{measure.tool} printed {wrong}"
    return values, ""


def _wrong(value: tools.Value) -> str:
    """Return why a value cannot be a sample, or an empty text."""
    if not math.isfinite(value.value) or (value.value and not SMALLEST <= abs(value.value) <= LARGEST):
        return f"{value.metric} {value.value:g}, which is out of range"
    for name in ("metric", "unit"):
        text, longest = getattr(value, name), getattr(Sample._meta.get_field(name), "max_length", 0)
        if plain(text) != text or len(text) > longest:
            return f"a {name} that is too long or has control characters: {plain(text)[:40]!r}"
    return "" if value.direction in Direction.values else f"an unknown direction: {plain(value.direction)[:40]!r}"


def _interim(measure: Measure, sample: RawSample) -> tools.Interim:
    """Return the throughput within a sample; none if it cannot be parsed, because no verdict depends on it."""
    try:
        found = tools.interim(measure, sample.stdout)
    except Exception:
        log.exception("the interim results of %s cannot be read", measure.tool)
        return []
    return found if all(math.isfinite(number) for pair in found for number in pair) else []


def _reason(problems: Sequence[str]) -> str:
    failed = [(index, problem) for index, problem in enumerate(problems) if problem]
    if not problems:
        return "nothing was measured"
    if not failed:
        return ""
    index, problem = failed[0]
    return f"{len(failed)} of {len(problems)} samples failed; sample {index}: {problem}"


def _state(raw: RawMeasurement, problems: Sequence[str], voids: Sequence[str]) -> tuple[MeasurementState, str]:
    """Return the state of a measurement, and the reason if it is not good."""
    if failure := raw.reason or _reason(problems):
        return MeasurementState.FAILED, plain(failure)
    if too_many := too_many_void(voids, raw.discard):
        return MeasurementState.VOID, plain(too_many)
    return MeasurementState.OK, ""


def too_many_void(voids: Sequence[str], discard: int = 0) -> str:
    """Return why a whole measurement is void, or an empty text: more of its samples are void than count.

    `voids` has the reason of each sample, and the first `discard` of them are warm-up.
    """
    fired = [(index, reason) for index, reason in enumerate(voids) if reason]
    taken = len(voids) - discard
    if 2 * len(fired) <= taken:
        return ""
    index, reason = fired[0]
    return f"{len(fired)} of {taken} samples are void; sample {index}: {reason}"


def _shown(index: int, sample: RawSample, void: str) -> str:
    """Return a sample's whole output below a line with its exit status, and gauges of possible disturbances."""
    if sample.malformed:
        return f"== sample {index}: malformed\n{sample.malformed}\n"
    ended = "killed after its time" if sample.timed_out else f"status {sample.rc}"
    if sample.refused:
        ended += f", sent away {sample.refused} times before"
    if void:
        ended += f", void: {void}"
    started = datetime.fromtimestamp(sample.started, UTC).isoformat(timespec="milliseconds")
    text = f"== sample {index}: {started}, {sample.seconds:.3f} s, {ended}\n"
    for stream, printed in (("stdout", sample.stdout), ("stderr", sample.stderr)):
        if printed:
            text += f"-- {stream}\n{printed.rstrip()}\n"
    if sample.gauges:
        lines = (f"{name}: {value} {UNITS.get(name, '')}".rstrip() for name, value in sample.gauges.items())
        text += "-- gauges\n" + "".join(f"{line}\n" for line in lines)
    return text
