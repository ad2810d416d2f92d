# SPDX-License-Identifier: BSD-2-Clause
"""Stores samples between the tool and the database, so that neither a crash nor a lost database loses them.

A boot has a journal, `BOOT.journal`: a line with its measurements, and then each sample as the host reported it. Each
finished measurement, successful or not, is in BOOT-TEST.json until it is in the database.
"""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from perfweb.measuring.raw import RawMeasurement, RawSample
from perfweb.runs.models import Run

_JOURNAL, _OLDER_JOURNAL = ".journal", ".told"
_UNREAD = ".unread"


def _root() -> Path:
    return Path(settings.PERFWEB_VAR) / "spool"


def _folder(run: Run) -> Path:
    """The directory of a run, named by number and creation time, because a new database counts from 1 again."""
    return _root() / f"{run.number}-{run.created.timestamp():.6f}"


def put(run: Run, raw: RawMeasurement) -> Path:
    """Store a result of `run` so that it survives a crash of this machine; return its file."""
    folder = _folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{raw.boot}-{raw.test.replace('/', '_')}.json"
    unfinished = folder / f"{name}.tmp"
    with _nothing_half(unfinished), unfinished.open("w", encoding="utf-8") as file:
        json.dump(raw.document(), file)
        file.flush()
        os.fsync(file.fileno())
    path = unfinished.rename(folder / name)
    for changed in (folder, folder.parent, folder.parent.parent):
        _sync(changed)
    return path


def begin(run: Run, boot: int, planned: Iterable[RawMeasurement]) -> Path:
    """Make a journal for a boot by its key, with its measurements without samples; return its file."""
    path = _folder(run) / f"{boot}{_JOURNAL}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with _nothing_half(path):
        documents = {raw.test: raw.document() for raw in planned}
        path.write_text(f"{json.dumps(documents)}\n", encoding="utf-8")
    return path


def unfinished(run: Run) -> list[Path]:
    """Return the journals of `run` whose worker did not finish the boot, with those of older versions."""
    return sorted(path for name in (_JOURNAL, _OLDER_JOURNAL) for path in _folder(run).glob(f"*{name}"))


def salvaged(journal: Path) -> tuple[list[RawMeasurement], list[str]]:
    """Return the measurements in a journal, and its unreadable lines: after a crash of the machine a block of a file
    may be lost. The incomplete last line of a dead worker is neither.
    """
    lines = journal.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    begun = {test: RawMeasurement.read(document) for test, document in json.loads(lines[0]).items()} if lines else {}
    samples: dict[str, list[RawSample]] = {test: [] for test in begun}
    damaged = []
    for line in lines[1:]:
        try:
            record = json.loads(line)
            test, left = record["test"], record["left"]
            taken = samples[test]
        except (ValueError, RecursionError, KeyError, TypeError):
            damaged.append(line)
            continue
        taken += [RawSample.read(record["sample"])] if "sample" in record else []
        reason = f"the worker died with {left} samples to take" if left else ""
        begun[test] = replace(begun[test], samples=taken, reason=reason)
    return [raw for raw in begun.values() if raw.samples], damaged


def waiting(run: Run) -> list[Path]:
    """Return the results of `run` in the spool."""
    return sorted(_folder(run).glob("*.json"))


def read(path: Path) -> RawMeasurement:
    """Read a result. Raises KeyError, TypeError or ValueError if it is not a measurement."""
    return RawMeasurement.read(json.loads(path.read_text(encoding="utf-8")))


def remove(path: Path) -> None:
    """Remove a result that is in the database now, or a journal that is not needed any more."""
    path.unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Set a result aside that cannot be stored; return its file."""
    return path.rename(path.with_name(f"{path.name}{_UNREAD}"))


def aside() -> list[Path]:
    """Return all results on this machine that could not be stored, with those of older versions of this program."""
    return sorted(_root().glob(f"*/*{_UNREAD}"))


def run_numbers(paths: Iterable[Path]) -> set[int]:
    """Return the runs with files in the spool; a directory without the number of a run is left out."""
    names = {path.parent.name.partition("-")[0] for path in paths}
    return {int(name) for name in names if name.isascii() and name.isdigit()}


def put_back(path: Path) -> Path:
    """Queue a result again that was set aside; return its file."""
    name = path.name.removesuffix(_UNREAD)
    # An older version removed the suffix: a journal was named by the key of its boot alone.
    return path.rename(path.with_name(name if "." in name else f"{name}{_JOURNAL if name.isdigit() else '.json'}"))


@contextmanager
def _nothing_half(path: Path) -> Iterator[None]:
    """Remove an incomplete file, for example after a full disk."""
    try:
        yield
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _sync(folder: Path) -> None:
    """Sync the entries of a folder: without it even the name of a synced file can be lost."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
