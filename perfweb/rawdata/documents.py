# SPDX-License-Identifier: BSD-2-Clause
"""A run as one JSON document, written while its samples are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Prefetch

from perfweb.lab.origins import Origin
from perfweb.rawdata.tables import ROWS_AT_ONCE
from perfweb.runs.models import Boot, Measurement, Run, Sample

_PIECE = 1 << 16


def run_head(run: Run) -> dict[str, Any]:
    """Describe a run with its plan, variants and hosts, without results."""
    return {
        "number": run.pk,
        "state": run.state,
        "reason": run.reason,
        "testbed": run.testbed.name,
        "origin": run.testbed.origin,
        "simulated": run.testbed.origin == Origin.SIMULATED,
        "seed": run.seed,
        **_fields(run, "created", "started", "ended"),
        "plan": _fields(run.plan, "name", "title", "sha256", "text"),
        "imported": _fields(run.imported, "format", "origin", "options", "sha256", "imported_by", "created")
        if run.imported
        else None,
        "variants": [
            {
                **_fields(variant, "name", "baseline", "target", "build_options", "tunables"),
                "build": _fields(variant.build, "key", "revision", "options") if variant.build else None,
            }
            for variant in run.variants.select_related("build")
        ],
        "hosts": [_fields(host, "role", "name", "facts") for host in run.host_facts.all()],
        "history": [_fields(step, "at", "from_state", "to_state", "reason") for step in run.transitions.all()],
    }


def run_json(run: Run) -> Iterator[bytes]:
    """Write run_head(), the names of all texts with their hashes, and boots with measurements and samples."""
    texts = [_fields(text, "name", "kind", "size", "sha256") for text in run.artefacts.defer("content")]
    samples = _samples(run)
    boots = run.boots.select_related("variant").prefetch_related(
        Prefetch("measurements", Measurement.objects.order_by("pk"))
    )
    pieces = _with_list({**run_head(run), "artefacts": texts}, "boots", (_boot(boot, samples) for boot in boots))
    yield from _gathered(pieces)
    yield b"\n"


def encoded(value: object) -> str:
    """Return JSON on one line, with times as ISO 8601."""
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


def _boot(boot: Boot, samples: _Samples) -> Iterator[str]:
    own = ("position", "attempt", "layout", "seed", "sentinel", "topology", "server", "state", "error", "command")
    head = {"variant": boot.variant.name, **_fields(boot, *own, "effective_tunables", "started", "ended")}
    of_boot = (_measurement(found, samples) for found in boot.measurements.all())
    return _with_list(head, "measurements", of_boot)


def _measurement(measurement: Measurement, samples: _Samples) -> Iterator[str]:
    own = ("test", "tool", "metric", "command", "pinning", "state", "reason", "environment", "started", "seconds")
    of_measurement = ([encoded(sample)] for sample in samples.of(measurement.pk))
    return _with_list(_fields(measurement, *own, "voids", "gauges", "interim"), "samples", of_measurement)


class _Samples:
    """The samples of a run in the order of its measurements, read when needed."""

    FIELDS = ("index", "metric", "value", "unit", "direction", "discarded", "seconds", "void")

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._groups = groupby(rows, key=lambda row: row[0])
        self._next = next(self._groups, None)

    def of(self, measurement: int) -> Iterator[dict[str, Any]]:
        """Yield the samples of a measurement; measurements must be requested in order."""
        if self._next is None or self._next[0] != measurement:
            return
        for row in self._next[1]:
            yield dict(zip(self.FIELDS, row[1:], strict=True))
        self._next = next(self._groups, None)


def _samples(run: Run) -> _Samples:
    rows = Sample.objects.filter(measurement__boot__run=run).order_by(
        "measurement__boot__position", "measurement__boot__attempt", "measurement_id", "index", "metric"
    )
    return _Samples(rows.values_list("measurement_id", *_Samples.FIELDS).iterator(ROWS_AT_ONCE))


def _with_list(head: dict[str, Any], name: str, items: Iterable[Iterable[str]]) -> Iterator[str]:
    """Write `head` with one more member, a list whose items are written one after the other."""
    yield f'{encoded(head)[:-1]}, "{name}": ['
    for number, item in enumerate(items):
        yield ",\n" if number else "\n"
        yield from item
    yield "]}"


def _gathered(pieces: Iterable[str]) -> Iterator[bytes]:
    """Join small pieces, because sending each costs a thread switch."""
    kept, length = [], 0
    for piece in pieces:
        kept.append(piece)
        length += len(piece)
        if length >= _PIECE:
            yield "".join(kept).encode()
            kept, length = [], 0
    yield "".join(kept).encode()


def _fields(row: object, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
