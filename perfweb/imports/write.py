# SPDX-License-Identifier: BSD-2-Clause
"""Makes runs of the records of an import: all of them or none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from perfweb.builds import services as builds
from perfweb.faults.services import for_each
from perfweb.imports import counted, iperf3, ministat, netperf, regress, table
from perfweb.imports.records import (
    MOST_RECORDS,
    Files,
    ImportProblemsError,
    Options,
    Problem,
    Record,
    Report,
    faults,
    slug,
)
from perfweb.lab import services as lab
from perfweb.lab.models import Role, Testbed
from perfweb.lab.origins import Origin
from perfweb.measuring import record as recording
from perfweb.plaintext import plain
from perfweb.runs import services as runs
from perfweb.runs.bulk import SampleRow, copy_samples
from perfweb.runs.models import (
    Artefact,
    ArtefactKind,
    Boot,
    BootState,
    HostFacts,
    Import,
    Measurement,
    MeasurementState,
    Plan,
    Run,
    RunState,
    RunTransition,
    Summary,
    Target,
    Topology,
    Variant,
)
from perfweb.runs.states import SUMMARISE
from perfweb.runs.summaries import summarise

FORMATS: dict[str, Callable[[Sequence[str], Options, Files], Iterator[Record]]] = {
    "counted": counted.read,
    "csv": table.read,
    "iperf3": iperf3.read,
    "ministat": ministat.read,
    "netperf": netperf.read,
    "test-result": regress.read,
}
BATCH = 2000
_LONGEST_TESTBED = 50
_LONGEST_FOLDER = 32


def import_files(
    form: str, paths: Sequence[str], options: Options, imported_by: str = ""
) -> tuple[Import, list[Record]]:
    """Make runs of files in one of FORMATS. Return the import, and the records if it is new.

    The same files with the same options are imported once: the second time there are no records. Raises
    ImportProblemsError with all problems, and then nothing is imported.
    """
    records, sha256 = read_files(form, paths, options)
    chosen = _reading_options(paths, options)
    reading = hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()
    with transaction.atomic():
        made, new = Import.objects.get_or_create(
            format=form, sha256=sha256, reading=reading,
            defaults={
                "origin": plain(options.origin or chosen["files"]), "options": chosen, "imported_by": imported_by,
            },
        )  # fmt: skip
        if not new:
            return made, []
        plan = _plan(options)
        written = [_write(made, plan, group, options) for group in _by_run(records)]
        for_each(SUMMARISE, written, lambda run: summarise([run.pk]))
    return made, records


def read_files(form: str, paths: Sequence[str], options: Options) -> tuple[list[Record], str]:
    """Read files without storing anything: their records and their SHA-256. Raises ImportProblemsError."""
    report = Report()
    files = Files(report)
    records: list[Record] = []
    for found in FORMATS[form](paths, options, files):
        record = replace(
            found,
            revision=found.revision or options.revision,
            committed=found.committed or options.committed,
            testbed=found.testbed or options.testbed,
        )
        if len(records) >= MOST_RECORDS:
            beyond = Problem(record.path, record.line, f"is beyond {MOST_RECORDS} samples: import less at once")
            raise ImportProblemsError([*report.problems, beyond])
        for fault in faults(record):
            report.add(record.path, record.line, fault)
        records.append(record)
    if not records and not report.problems:
        report.add(Path(paths[0]), 0, "has nothing to import")
    _check_together(records, options, report)
    _check_testbeds(records, report)
    report.settle()
    return records, files.sha256


def _check_together(records: Sequence[Record], options: Options, report: Report) -> None:
    """Report problems of records together, even if each is valid: names that become one, and units that differ."""
    written: dict[tuple[str, str], str] = {}
    units: dict[tuple[str, str], tuple[str, str]] = {}
    metrics: dict[str, str] = {}
    for record in records:
        for kind, name in (("variant", record.variant), ("testbed", record.testbed)):
            if (first := written.setdefault((kind, slug(name)), name)) != name:
                report.add(record.path, record.line, f"the {kind}s {first!r} and {name!r} would have the same name")
        for value in record.values:
            kept = units.setdefault((record.test, value.metric), (value.unit, value.direction))
            if kept != (value.unit, value.direction):
                report.add(
                    record.path, record.line, f"{value.metric} is in {value.unit!r}, before it was in {kept[0]!r}"
                )
        if record.values:
            first = metrics.setdefault(record.test, record.values[0].metric)
            if first != record.values[0].metric:
                report.add(record.path, record.line, f"is about {record.values[0].metric}, before it was {first}")
    if options.baseline and records and ("variant", slug(options.baseline)) not in written:
        known = ", ".join(name for kind, name in written if kind == "variant")
        report.add(records[0].path, 0, f"has no variant {options.baseline!r} to be the baseline; there are: {known}")
    _check_units({test: units[test, metric] for test, metric in metrics.items()}, records, report)


def _check_testbeds(records: Sequence[Record], report: Report) -> None:
    """Refuse a testbed of another origin than the results, and one of samples."""
    names = {_testbed_name(record): record for record in records}
    for name in Testbed.objects.exclude(sample="").filter(name__in=names).values_list("name", flat=True):
        report.add(names[name].path, names[name].line, f"the testbed {name} holds samples: give another with --testbed")
    for name, origin in Testbed.objects.filter(name__in=names).values_list("name", "origin"):
        if origin != names[name].origin:
            why = f"the testbed {name} {Origin(origin).verb}s: give another one with --testbed"
            report.add(names[name].path, names[name].line, why)


def _testbed_name(record: Record) -> str:
    return slug(record.testbed)[:_LONGEST_TESTBED].strip("-_")


def _check_units(units: dict[str, tuple[str, str]], records: Sequence[Record], report: Report) -> None:
    """Refuse a test that exists in another unit, because graphs would mix them."""
    first = {record.test: record for record in reversed(records)}
    known = Summary.objects.filter(test__in=units).order_by("test").distinct("test")
    for test, unit, direction in known.values_list("test", "unit", "direction"):
        if units[test] != (unit, direction):
            place = first[test]
            problem = (
                f"{test} is here in {unit or 'no unit'}, {direction} is better, and not in {units[test][0] or 'none'}"
            )
            report.add(place.path, place.line, f"{problem}: give --unit and --lower, or another --test")


def _reading_options(paths: Sequence[str], options: Options) -> dict[str, Any]:
    """Return the options for reading as JSON: without comments for readers, and with names instead of paths."""
    chosen = {name: value for name, value in asdict(options).items() if name not in {"origin", "title"}}
    chosen["committed"] = options.committed.isoformat() if options.committed else None
    chosen["files"] = ", ".join(Path(path).name for path in paths)
    return chosen


def _plan(options: Options) -> Plan:
    title = options.title or f"Imported: {options.plan}"
    text = (
        f"# Results from elsewhere: nothing here can run this plan.\nname: {options.plan}\ntitle: {json.dumps(title)}\n"
    )
    return runs.keep_plan(text, options.plan, title)


def _by_run(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Group the records by testbed and revision, the oldest first, else in the order of the files."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((record.testbed, record.revision, record.committed), []).append(record)
    dated = sorted((key for key in groups if key[2]), key=lambda key: key[2])
    for key in [*dated, *(key for key in groups if not key[2])]:
        yield groups[key]


def _write(made: Import, plan: Plan, records: Sequence[Record], options: Options) -> Run:
    first = records[0]
    run = Run.objects.create(
        plan=plan, testbed=lab.imported_testbed(_testbed_name(first), first.origin), state=RunState.DONE,
        reason=plain(f"imported: {made.origin}"), requested_by=made.imported_by, imported=made,
        started=min((record.started for record in records if record.started), default=None),
    )  # fmt: skip
    # Without times of commits all get the same time, because the order of an import is not a history.
    Run.objects.filter(pk=run.pk).update(created=made.created)
    RunTransition.objects.create(run=run, to_state=run.state, reason=run.reason)
    if first.testbed != options.testbed:
        HostFacts.objects.create(run=run, role=Role.DUT, name=first.testbed[:253], facts={"model": first.testbed})
    variants = _variants(run, records, options)
    boots: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        boots.setdefault((record.variant, record.boot, _topology(record, options), record.tool), []).append(record)
    _write_boots(run, variants, boots)
    return run


def _variants(run: Run, records: Sequence[Record], options: Options) -> dict[str, Variant]:
    first = records[0]
    build = builds.foreign(first.revision, first.committed) if first.revision or first.committed else None
    names = list(dict.fromkeys(slug(record.variant) for record in records))
    baseline = slug(options.baseline) if slug(options.baseline) in names else names[0]
    return {
        name: Variant.objects.create(
            run=run, name=name, position=place, baseline=name == baseline, target=Target.OTHER, build=build
        )
        for place, name in enumerate(names)
    }


def _topology(record: Record, options: Options) -> str:
    return next((part for part in record.test.split("/") if part in Topology.values), options.topology)


def _write_boots(run: Run, variants: dict[str, Variant], grouped: dict[tuple[str, ...], list[Record]]) -> None:
    """Write boots, measurements, samples and texts, each kind at once."""
    boots: list[Boot] = []
    measurements: list[Measurement] = []
    taken: list[tuple[Measurement, list[Record]]] = []
    texts: list[Artefact] = []
    for position, ((variant, _, topology, tool), records) in enumerate(grouped.items()):
        boot = Boot(
            run=run, variant=variants[slug(variant)], topology=topology, server=tool[:24] or "unknown",
            position=position, state=BootState.STOPPED, started=records[0].started or timezone.now(),
            seed=records[0].seed,
        )  # fmt: skip
        boots.append(boot)
        in_order = sorted(records, key=lambda record: record.test)
        for test, members in groupby(in_order, key=lambda record: record.test):
            of_test = list(members)
            measurement = _measurement(boot, test, of_test)
            measurements.append(measurement)
            taken.append((measurement, of_test))
            texts += _text(measurement, of_test)
    Boot.objects.bulk_create(boots, BATCH)
    Measurement.objects.bulk_create(measurements, BATCH)
    copy_samples(row for measurement, of_test in taken for row in _samples(measurement.pk, of_test))
    Artefact.objects.bulk_create(texts, BATCH)


def _measurement(boot: Boot, test: str, records: Sequence[Record]) -> Measurement:
    problem = next((record.problem for record in records if record.problem), "")
    voids = [record.void for record in records]
    void = recording.too_many_void(voids)
    state = MeasurementState.FAILED if problem else MeasurementState.VOID if void else MeasurementState.OK
    return Measurement(
        boot=boot, test=test, tool=records[0].tool[:24], command=plain(records[0].command),
        metric=next((record.values[0].metric for record in records if record.values), ""),
        state=state, reason=plain(problem or void), voids=sum(map(bool, voids)),
        started=records[0].started or boot.started, seconds=sum(record.seconds for record in records),
    )  # fmt: skip


def _samples(measurement: int, records: Sequence[Record]) -> Iterator[SampleRow]:
    for index, record in enumerate(records):
        void = record.void
        for value in record.values:
            yield (
                measurement, index, value.metric, value.value, value.unit, value.direction, False, record.seconds, void,
            )  # fmt: skip


def _text(measurement: Measurement, records: Sequence[Record]) -> Iterator[Artefact]:
    """Return the lines of the samples."""
    boot = measurement.boot
    if output := "".join(record.output for record in records):
        folder = f"boots/{boot.position:03d}-{boot.variant.name[:_LONGEST_FOLDER]}"
        yield Artefact(
            run=boot.run, boot=boot, measurement=measurement, kind=ArtefactKind.TOOL_OUTPUT,
            name=f"{folder}/{measurement.test.replace('/', '_')}.txt", **recording.kept(output),
        )  # fmt: skip
