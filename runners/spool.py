# SPDX-License-Identifier: BSD-2-Clause
"""Where a measurement lies between the tool and the database, so that neither a crash nor a lost database loses it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings


def _folder(number: int) -> Path:
    return Path(settings.PERFWEB_VAR) / "spool" / str(number)


def put(number: int, document: dict[str, Any]) -> Path:
    """Writes a result of run `number` so that it survives a crash of this machine; returns its file."""
    folder = _folder(number)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{document['boot']}-{document['test'].replace('/', '_')}.json"
    unfinished = folder / f"{name}.tmp"
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    return unfinished.rename(folder / name)


def waiting(number: int) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The results of run `number` that nobody has taken out yet."""
    for path in sorted(_folder(number).glob("*.json")):
        yield path, json.loads(path.read_text(encoding="utf-8"))


def remove(path: Path) -> None:
    """Takes out a result that is in the database now."""
    path.unlink(missing_ok=True)
