# SPDX-License-Identifier: BSD-2-Clause
"""Where a measurement lies between the tool and the database, so that neither a crash nor a lost database loses it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

from perfweb.runs.models import Run


def _folder(run: Run) -> Path:
    """Named by number and birth, for a database that was made anew counts from 1 again."""
    return Path(settings.PERFWEB_VAR) / "spool" / f"{run.number}-{run.created.timestamp():.6f}"


def put(run: Run, document: dict[str, Any]) -> Path:
    """Writes a result of `run` so that it survives a crash of this machine; returns its file."""
    folder = _folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{document['boot']}-{document['test'].replace('/', '_')}.json"
    unfinished = folder / f"{name}.tmp"
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    return unfinished.rename(folder / name)


def waiting(run: Run) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The results of `run` that nobody has taken out yet."""
    for path in sorted(_folder(run).glob("*.json")):
        yield path, json.loads(path.read_text(encoding="utf-8"))


def remove(path: Path) -> None:
    """Takes out a result that is in the database now."""
    path.unlink(missing_ok=True)
