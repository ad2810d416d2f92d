# SPDX-License-Identifier: BSD-2-Clause
"""All downloadable files of a run, a comparison or a series."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from django.db.models import Q

from perfweb.figures.timelines import Window
from perfweb.rawdata import judgements, selections
from perfweb.rawdata.archives import (
    Archive,
    Member,
    Written,
    artefact_member,
    measured,
    skipped,
    text_member,
    unique_names,
)
from perfweb.rawdata.documents import encoded, run_head, run_json
from perfweb.rawdata.downloads import Body
from perfweb.rawdata.selections import Selection
from perfweb.rawdata.tables import FORMATS, Table
from perfweb.runs.judging import counted_samples, sample_sets
from perfweb.runs.models import ArtefactKind, Run, Variant
from perfweb.stats.comparison import DEFAULT_MARGIN
from perfweb.stats.student import DEFAULT_CONFIDENCE
from perfweb.verdicts import names
from perfweb.verdicts.doubts import run_pairs, side_comparisons
from perfweb.verdicts.sides import Side

BUNDLE_FORMAT = 1
"""Version of bundle.json, which perfweb.rawdata.replay reads."""


class StillRunningError(RuntimeError):
    """An archive of an unfinished run was requested; the message names the alternatives."""


def table_body(selection: Selection, stem: str, form: str, table: Table, parameters: str = "") -> Body:
    """A table in one of FORMATS; `parameters` are further ones, such as a confidence level."""
    kind = FORMATS[form]
    return _written_body(selection, f"{stem}.{form}", kind.content_type, lambda: kind.write(table), parameters)


def document_body(selection: Selection, run: Run) -> Body:
    """run.json: everything about a run except the texts."""
    return _written_body(selection, "run.json", "application/json", lambda: run_json(run))


def _written_body(
    selection: Selection, name: str, content_type: str, write: Callable[[], Iterator[bytes]], parameters: str = ""
) -> Body:
    written = _written(selection, name, write, parameters)
    return Body(
        f"{selection.name}-{name}",
        content_type,
        lambda start: skipped(write(), start),
        lambda: measured(written).size,
        _etag(written.identity) if selection.is_over else "",
        selection.modified,
        announced=False,
    )


def _written(selection: Selection, name: str, write: Callable[[], Iterator[bytes]], parameters: str = "") -> Written:
    return Written(f"{selection.version} {selection.name} {name} {parameters}", write)


def _etag(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def archive_body(selection: Selection, members: Callable[[], Iterable[Member]], parameters: str = "") -> Body:
    """An archive of members, which are made during the download. Raises StillRunningError."""
    modified = selection.modified
    if not selection.is_over or modified is None:
        raise StillRunningError(
            "What is still running has no archive yet: it is made when the run is over. Its samples and what is known "
            "about it can be downloaded at any time (samples.csv, samples.json, samples.parquet, run.json)."
        )
    made: list[Archive] = []

    def archive() -> Archive:
        if not made:
            found = list(members())
            paths = unique_names(member.name for member in found)
            named = [replace(member, name=path) for member, path in zip(found, paths, strict=True)]
            made.append(Archive(selection.name.replace("/", "-"), modified, named))
        return made[0]

    return Body(
        f"{selection.name}.tar",
        "application/x-tar",
        lambda start: archive().pieces(start),
        lambda: archive().length,
        _etag(f"{selection.version} {selection.name} tar {parameters}"),
        modified,
    )


def run_members(selection: Selection, run: Run) -> Iterator[Member]:
    """The replay bundle of a run: plan, environment, samples, verdicts, files for ministat, and all texts."""
    variants = list(run.variants.all())
    counted = counted_samples([run])[run.pk]
    bundle = {
        "format": BUNDLE_FORMAT,
        "confidence": DEFAULT_CONFIDENCE,
        "margin": DEFAULT_MARGIN,
        "patches": list(run.artefacts.filter(kind=ArtefactKind.PATCH).values("name", "size", "sha256")),
        "tests": names.in_order(counted.tests),
        "missing": [
            {"variant": variant.name, "test": test, "reason": reason}
            for variant in variants
            for (key, test), reason in sorted(counted.missing.items())
            if key == variant.pk
        ],
        "run": run_head(run),
    }
    yield text_member("bundle.json", encoded(bundle).encode() + b"\n")
    yield text_member("plan.yaml", run.plan.text.encode())
    yield _written_member(selection, "run.json", lambda: run_json(run))
    yield _table_member(selection, "samples.csv", selections.samples_table(selection))
    compared = [comparison for pair in run_pairs(run, counted) for comparison in pair.compared]
    yield _table_member(selection, "verdicts.json", judgements.verdicts_table(compared))
    for test in names.in_order(counted.tests):
        for variant in variants:
            if found := counted.sets.get((variant.pk, test)):
                yield _ministat_member(names.ministat_file(variant.name, test), found.values)
    yield from _artefacts(selection, lambda _, name: f"artefacts/{name}")


def side_members(selection: Selection, sides: Sequence[Side], confidence: float, margin: float) -> Iterator[Member]:
    """Samples, verdicts, files for ministat and all texts of a comparison."""
    yield _table_member(selection, "samples.csv", selections.samples_table(selection))
    table = judgements.verdicts_table(side_comparisons(sides, confidence, margin).everything)
    yield _table_member(selection, "verdicts.json", table, f"{confidence} {margin}")
    for side in sides:
        for test in names.in_order(side.sets):
            yield _ministat_member(names.ministat_file(side.label, test), side.sets[test].values)
    yield from _artefacts(selection, lambda run, name: f"artefacts/run-{run}/{name}")


def series_members(selection: Selection, test: str, window: Window, wanted: Sequence[str]) -> Iterator[Member]:
    """The series itself, samples, files for ministat and outputs of all its measurements."""
    parameters = f"{window} {wanted}"
    yield _table_member(selection, "series.csv", selections.series_table(test, window, wanted), parameters)
    yield _table_member(selection, "samples.csv", selections.samples_table(selection), parameters)
    variants = dict(Variant.objects.filter(run__in=selection.runs.values("pk")).values_list("pk", "name"))
    for run, variant, _, found in sample_sets(Q(measurement__in=selection.measurements.order_by().values("pk"))):
        yield _ministat_member(names.ministat_file(f"run-{run}/{variants[variant]}", test), found.values)
    yield from _artefacts(selection, lambda run, name: f"artefacts/run-{run}/{name}")


def ministat_lines(values: Iterable[float]) -> bytes:
    """Return samples in ministat's format: one number on a line, with all its digits."""
    return "".join(f"{value!r}\n" for value in values).encode()


def _ministat_member(name: str, values: Iterable[float]) -> Member:
    return text_member(f"ministat/{name}", ministat_lines(values))


def _table_member(selection: Selection, name: str, table: Table, parameters: str = "") -> Member:
    kind = FORMATS[name.rpartition(".")[2]]
    return _written_member(selection, name, lambda: kind.write(table), parameters)


def _written_member(
    selection: Selection, name: str, write: Callable[[], Iterator[bytes]], parameters: str = ""
) -> Member:
    return Member(name, measured(_written(selection, name, write, parameters)), write)


def _artefacts(selection: Selection, name: Callable[[int, str], str]) -> Iterator[Member]:
    rows = selection.artefacts.order_by("run_id", "name").values_list("pk", "run_id", "name", "size", "sha256")
    for key, run, artefact, size, sha256 in rows:
        yield artefact_member(key, name(run, artefact), size, sha256)
