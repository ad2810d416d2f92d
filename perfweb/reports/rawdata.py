# SPDX-License-Identifier: BSD-2-Clause
"""The raw data of a run: samples as CSV, what is known about it as JSON, and all of it with all texts as a tar archive.

Anybody can recompute every verdict from them. The table goes out line by line and the archive file by file, because a
run may have more than memory should hold.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Prefetch

from perfweb.reports import names
from perfweb.reports.comparisons import counted_samples
from perfweb.runs.models import Artefact, Boot, Measurement, Run, Sample

CSV_COLUMNS = {
    "run": "measurement__boot__run_id",
    "variant": "measurement__boot__variant__name",
    "boot": "measurement__boot__position",
    "attempt": "measurement__boot__attempt",
    "test": "measurement__test",
    "sample": "index",
    "metric": "metric",
    "value": "value",
    "unit": "unit",
    "direction": "direction",
    "discarded": "discarded",
    "measurement_state": "measurement__state",
    "seconds": "seconds",
}
"""Columns of samples.csv, and the fields they come from. Scripts read them by name: add some, never rename one."""

_BLOCK = tarfile.BLOCKSIZE


def samples_csv(run: Run) -> Iterator[str]:
    """Yield the lines of a table of all samples, discarded ones included, in the order in which they were taken."""
    yield _csv_line(CSV_COLUMNS)
    rows = Sample.objects.filter(measurement__boot__run=run).order_by(
        "measurement__boot__position", "measurement__boot__attempt", "measurement_id", "index", "metric"
    )
    for row in rows.values_list(*CSV_COLUMNS.values()).iterator():
        yield _csv_line(row)


def _csv_line(cells: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(
        str(cell).lower() if isinstance(cell, bool) else cell for cell in cells
    )
    return line.getvalue()


def ministat_lines(values: Iterable[float]) -> str:
    """Return samples the way ministat reads them: one number on a line, with all its digits."""
    return "".join(f"{value!r}\n" for value in values)


def run_document(run: Run) -> dict[str, Any]:
    """Describe a run, its variants, hosts, boots, measurements with samples, and artefacts as one JSON document."""
    return {
        "number": run.pk,
        "state": run.state,
        "reason": run.reason,
        "testbed": run.testbed.name,
        "seed": run.seed,
        **_fields(run, "created", "started", "ended"),
        "plan": _fields(run.plan, "name", "title", "sha256", "text"),
        "variants": [
            {
                **_fields(variant, "name", "baseline", "target", "build_options", "tunables"),
                "build": _fields(variant.build, "key", "revision", "options") if variant.build else None,
            }
            for variant in run.variants.select_related("build")
        ],
        "hosts": [_fields(host, "role", "name", "facts") for host in run.host_facts.all()],
        "history": [_fields(step, "at", "from_state", "to_state", "reason") for step in run.transitions.all()],
        "boots": [_boot_document(boot) for boot in _boots(run)],
        "artefacts": [_fields(text, "name", "kind", "size", "sha256") for text in run.artefacts.defer("content")],
    }


def run_json(run: Run) -> str:
    """Return run_document() as text."""
    return json.dumps(run_document(run), cls=DjangoJSONEncoder, indent=1) + "\n"


def _boots(run: Run) -> Iterable[Boot]:
    measurements = Measurement.objects.order_by("pk").prefetch_related("samples")
    return run.boots.select_related("variant").prefetch_related(Prefetch("measurements", measurements))


def _boot_document(boot: Boot) -> dict[str, Any]:
    own = ("position", "attempt", "topology", "server", "state", "error", "command", "effective_tunables")
    return {
        "variant": boot.variant.name,
        **_fields(boot, *own, "started", "ended"),
        "measurements": [_measurement_document(measurement) for measurement in boot.measurements.all()],
    }


def _measurement_document(measurement: Measurement) -> dict[str, Any]:
    own = ("test", "tool", "metric", "command", "pinning", "state", "reason", "environment", "started", "seconds")
    of_sample = ("index", "metric", "value", "unit", "direction", "discarded", "seconds")
    return {
        **_fields(measurement, *own),
        "samples": [_fields(sample, *of_sample) for sample in measurement.samples.all()],
    }


def _fields(row: object, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def run_tar(run: Run) -> Iterator[bytes]:
    """Yield a tar archive of a run: samples, description, files for ministat, all artefacts, and SHA256SUMS of them
    all.

    `sha256sum -c SHA256SUMS` in the unpacked folder checks it. Times are those of the run, so that the archive of a
    finished run is the same every time.
    """
    folder, time = f"run-{run.pk}", run.ended or run.created
    sums = []
    for name, content in _files(run):
        sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
        yield _member(f"{folder}/{name}", content, time)
    yield _member(f"{folder}/SHA256SUMS", "".join(sums).encode(), time)
    yield b"\0" * (2 * _BLOCK)


def _files(run: Run) -> Iterator[tuple[str, bytes]]:
    yield "samples.csv", "".join(samples_csv(run)).encode()
    yield "run.json", run_json(run).encode()
    yield "plan.yaml", run.plan.text.encode()
    counted, variants = counted_samples([run])[run.pk], {variant.pk: variant.name for variant in run.variants.all()}
    for test in names.in_order(counted.tests):
        for key, variant in variants.items():
            if found := counted.sets.get((key, test)):
                yield f"ministat/{names.ministat_file(variant, test)}", ministat_lines(found.values).encode()
    for artefact in Artefact.objects.filter(run=run).order_by("name").iterator(chunk_size=10):
        yield f"artefacts/{artefact.name}", bytes(artefact.content)


def _member(name: str, content: bytes, time: datetime) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = len(content), int(time.timestamp()), 0o644
    return entry.tobuf(tarfile.PAX_FORMAT) + content + b"\0" * (-len(content) % _BLOCK)
