# SPDX-License-Identifier: BSD-2-Clause
"""Bundles of samples: the rows of testbeds in one compressed file, and their way back into a database.

A bundle is a list of JSON values, one a line, compressed with xz: first `{"format": 1}`, then for each table an object
with its model and the names of its columns, and its rows as lists in the order of their keys. Times are in ISO 8601,
bytes in base64. A column that a bundle lacks gets the default of its field; one that it has in an older version is
renamed, and any other is an error.

All that is saved is marked: names of testbeds, hosts, accounts, repositories and branches begin with `sample-`, also
where a row only names an account. Nothing of it can act: testbeds have no inventory, accounts no password, branches are
paused and notify nobody, and no build is treated as an installed one.

A bundle is published, so it does not describe the machines that it comes from: build logs, addresses and most facts
about hosts are left out, and each path is reduced to its last name. Only plans and patches are saved as they were
written.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, models, transaction

from perfweb.builds.models import BuildState
from perfweb.jsontext import read_json
from perfweb.lab.models import Testbed
from perfweb.runs.bulk import copy_rows
from perfweb.runs.models import OPEN_STATES, Plan
from perfweb.samples.tables import NO_ADDRESS, OLDER_COLUMNS, PREFIX, TABLES, Table

FORMAT = 1
SUFFIX = ".jsonl.xz"
LARGEST = 256 << 20
"""Bytes of a bundle that are read, uncompressed."""
FACTS = {
    "architecture", "clocksource", "congestion_control", "cpu", "cpu_model", "cpus", "governor", "kernel", "memory_kib",
    "mitigations", "model", "sandbox", "versions",
}  # fmt: skip
"""The facts about hosts that are saved, of a kernel only name and number: they explain results, and identify nobody."""
UNMARKED = ("", "perfweb", "tracking")
"""What a row can name instead of an account: nobody, or a part of the service."""
SYSTEM = ("bin", "dev", "etc", "lib", "proc", "sbin", "sys", "usr")
"""Directories that are the same on each machine."""

_DIRECTORIES = re.compile(rf"(?<![\w.:/-])/(?!(?:{'|'.join(SYSTEM)})/)(?:[\w.+~@-]+/)+")
_KERNEL = re.compile(r"(?:[A-Za-z]+ )?[0-9.]+", re.ASCII)


class SampleError(ValueError):
    """A bundle cannot be saved or loaded; the message has the reason and what to do."""


@dataclass(frozen=True)
class Loaded:
    """What a bundle has brought: its name, and the numbers of runs and of all rows."""

    name: str
    runs: int
    rows: int


def save(path: Path, names: Mapping[str, str], origin: str) -> int:
    """Write the rows of testbeds to a file, and return their number; `names` has their names as samples, without the
    prefix, and `origin` the source of the values. Raises SampleError.
    """
    if wrong := [name for name in names.values() if re.fullmatch(r"[a-z0-9-]{1,40}", name, re.ASCII) is None]:
        raise SampleError(f"{wrong[0]!r} is no name for a sample: use 1 to 40 small letters, digits and -")
    testbeds = dict(Testbed.objects.filter(name__in=names).values_list("name", "pk"))
    if missing := names.keys() - testbeds.keys():
        raise SampleError(f"there is no testbed {min(missing)!r}")
    keys = list(testbeds.values())
    if (unfinished := Testbed.objects.filter(pk__in=keys, runs__state__in=OPEN_STATES)).exists():
        raise SampleError(f"testbed {unfinished[0].name} has runs that are not over: wait for them, or cancel them")
    rows = 0
    with transaction.atomic(), lzma.open(path, "wt", encoding="utf-8", preset=9) as file:
        file.write(_line({"format": FORMAT}))
        for table in TABLES:
            fields = _fields(table.model)
            file.write(_line({"model": table.label, "fields": [field.attname for field in fields]}))
            for row in table.rows(keys).order_by("pk").iterator(chunk_size=500):
                _disarm(row, names, origin)
                _anonymise(row)
                values = [getattr(row, field.attname) for field in fields]
                if table.model is not Plan:  # a plan's key is a hash of its text
                    values = [_without_paths(value) for value in values]
                file.write(_line([_written(value) for value in values]))
                rows += 1
    return rows


def load(path: Path) -> Loaded:
    """Insert the rows of a bundle with new keys: all or none. Raises SampleError."""
    try:
        with transaction.atomic():
            return _load(path)
    except SampleError:
        raise
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise SampleError(f"{path} cannot be read: {error}") from None
    except (LookupError, TypeError, ValueError, ValidationError, DatabaseError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise SampleError(f"{path} is damaged ({reason}): make it again with manage.py save_samples") from None


def _load(path: Path) -> Loaded:
    keys: dict[str, dict[int, int]] = {}
    rows = 0
    for table, names, found in _tables(path):
        _check_columns(path, table, names)
        made = [_row(table.model, _renamed(table, dict(zip(names, values, strict=True))), keys) for values in found]
        _check_free(table, made)
        known = _known(table, made)
        new = [row for row in made if _name(table, row) not in known]
        numbers = _numbers(table.model, len(new))
        of_table = keys[table.label] = {}
        for row in made:
            number = known.get(_name(table, row)) or next(numbers)
            of_table[row.pk], row.pk = number, number
        rows += copy_rows(new)
    return Loaded(path.name.removesuffix(SUFFIX), len(keys["runs.run"]), rows)


def _check_free(table: Table, rows: Sequence[Any]) -> None:
    """Raises SampleError if a name is taken by a row that is no sample, or that other samples cannot share."""
    if not table.name or (table.shared and not table.mark):
        return
    taken = table.model._default_manager.filter(**{f"{table.name}__in": [_name(table, row) for row in rows]})
    if found := (taken.exclude(table.mark) if table.mark else taken).first():
        raise SampleError(f"there is a {table.model._meta.verbose_name} {_name(table, found)} already: rename it")


def _tables(path: Path) -> Iterator[tuple[Table, list[str], list[list[Any]]]]:
    """Yield the tables of a bundle with the names of their columns and their rows."""
    with lzma.open(path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise SampleError(f"{path} has more than {LARGEST} bytes: save fewer testbeds in one bundle")
    lines = [read_json(line) for line in content.splitlines()]
    if not lines or lines[0] != {"format": FORMAT}:
        raise SampleError(f"{path} is no bundle of samples in format {FORMAT}")
    tables = {table.label: table for table in TABLES}
    heads = [place for place, line in enumerate(lines) if isinstance(line, dict)][1:]
    for head, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        yield tables[lines[head]["model"]], lines[head]["fields"], lines[head + 1 : end]


def _fields(model: type[models.Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if not getattr(field, "generated", False)]


def _renamed(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row by the columns of this version."""
    renamed = [(OLDER_COLUMNS.get((table.label, name)), name, value) for name, value in values.items()]
    return dict(change(value) if change else (name, value) for change, name, value in renamed)


def _check_columns(path: Path, table: Table, names: Iterable[str]) -> None:
    """Raises SampleError for a column of which this version knows nothing, because its values would be lost."""
    known = {field.attname for field in _fields(table.model)} | {
        old for label, old in OLDER_COLUMNS if label == table.label
    }
    if unknown := sorted(set(names) - known):
        raise SampleError(
            f"{path} is of another version: it has a column {unknown[0]!r} of {table.label}; upgrade first"
        )


def _row(model: type[models.Model], values: Mapping[str, Any], keys: Mapping[str, Mapping[int, int]]) -> Any:
    """Return an unsaved row with its old key; its foreign keys are those of the rows inserted before it."""
    row = model()
    for field in _fields(model):
        if field.attname not in values:
            continue
        value = values[field.attname]
        if field.remote_field and value is not None:
            value = keys[field.remote_field.model._meta.label_lower][value]
        elif isinstance(field, models.BinaryField):
            value = base64.b64decode(value)
        elif not isinstance(field, models.JSONField):
            value = field.to_python(value)
        setattr(row, field.attname, value)
    return row


def _name(table: Table, row: models.Model) -> object:
    return getattr(row, table.name) if table.name else None


def _known(table: Table, rows: Iterable[models.Model]) -> dict[object, int]:
    """Return the keys of rows that are in the database already, by their names."""
    if not table.shared:
        return {}
    wanted = [_name(table, row) for row in rows]
    return dict(table.model._default_manager.filter(**{f"{table.name}__in": wanted}).values_list(table.name, "pk"))


def _numbers(model: type[models.Model], count: int) -> Iterator[int]:
    """Take that many keys from the sequence of a table."""
    if not count:
        return iter(())
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)",
            [model._meta.db_table, model._meta.pk.column, count],
        )
        return iter([number for (number,) in cursor.fetchall()])


def _disarm(row: Any, names: Mapping[str, str], origin: str) -> None:
    """Mark a row as a sample, and take from it what could act. The row is not saved."""
    match row._meta.label_lower:
        case "lab.testbed":
            row.name, row.sample, row.inventory, row.lab = PREFIX + names[row.name], origin, "", ""
        case "accounts.user":
            row.username, row.password, row.email, row.is_active = _marked(row.username), make_password(None), "", False
        case "builds.mirror":
            row.name, row.url = _marked(row.name), NO_ADDRESS
        case "runs.summary":
            testbed, _, line = row.series.partition("/")
            row.series = f"{PREFIX}{names[testbed]}/{line}"
        case "tracking.trackedbranch":
            row.name, row.active, row.mail_to, row.hook, row.issues = _marked(row.name), False, "", "", False
        case "tracking.alertstep":
            row.text = re.sub(r"\brun [0-9]+: ", "", row.text)  # loaded runs have other numbers
            row.who = _marked(row.who)
        case "submissions.submissiontransition":
            row.who = _marked(row.who)
        case _:
            _separate(row)


def _separate(row: Any) -> None:
    """Give a row a key that differs from that of an equal one which is no sample."""
    match row._meta.label_lower:
        case "builds.build":
            row.key = _digest(row.key)[:32]
            row.state, row.prefix = BuildState.FOREIGN, ""
        case "runs.import":
            row.reading, row.imported_by = _digest(row.reading), _marked(row.imported_by)
        case "runs.run":
            row.lease_id, row.requested_by = None, _marked(row.requested_by)
        case "submissions.submission":
            row.content = row.content and _digest(row.content)


def _anonymise(row: Any) -> None:
    """Take from a row what identifies a machine."""
    match row._meta.label_lower:
        case "lab.host":
            row.name, row.address = _marked(row.role), ""
        case "runs.hostfacts":
            row.name = _marked(row.role)
            kernel = _KERNEL.match(str(row.facts.pop("kernel", "")))
            row.facts = {name: value for name, value in row.facts.items() if name in FACTS}
            row.facts |= {"kernel": kernel[0]} if kernel else {}
        case "builds.build":
            row.log = ""
        case "runs.artefact":
            row.content = _without_paths(bytes(row.content).decode("latin-1")).encode("latin-1")
            row.size, row.sha256 = len(row.content), hashlib.sha256(row.content).hexdigest()


def _without_paths(value: Any) -> Any:
    """Return a value whose texts have only the last name of each absolute path outside the directories of a system."""
    match value:
        case str():
            return _DIRECTORIES.sub("", value)
        case list():
            return [_without_paths(one) for one in value]
        case dict():
            return {name: _without_paths(one) for name, one in value.items()}
    return value


def _marked(name: str) -> str:
    return name if name in UNMARKED or name.startswith(PREFIX) else PREFIX + name


def _digest(key: str) -> str:
    """Return another key, so that nothing of a sample is treated as real."""
    return hashlib.sha256(f"{PREFIX}{key}".encode()).hexdigest()


def _written(value: object) -> object:
    match value:
        case date():
            return value.isoformat()
        case bytes() | memoryview():
            return base64.b64encode(value).decode()
    return value


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
