# SPDX-License-Identifier: BSD-2-Clause
"""Shared parts of the tests of importers: read files as an import does."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfweb.imports.records import Files, ImportProblemsError, Options, Record, Report, faults
from perfweb.imports.write import FORMATS

DATA = Path(__file__).parent / "data"
TOOLS = Path(__file__).parents[1] / "measuring" / "fixtures"


def read(form: str, *paths: object, **options: object) -> list[Record]:
    """The records of files; raises ImportProblemsError."""
    report = Report()
    found = list(FORMATS[form]([str(path) for path in paths], Options(plan="p", **options), Files(report)))  # type: ignore[arg-type]
    for record in found:
        for fault in faults(record):
            report.add(record.path, record.line, fault)
    report.settle()
    return found


def problems(form: str, *paths: object, **options: object) -> list[str]:
    with pytest.raises(ImportProblemsError) as caught:
        read(form, *paths, **options)
    return [f"{problem.path.name}:{problem.line}: {problem.reason}" for problem in caught.value.problems]


def file(tmp_path: Path, content: str | bytes, name: str = "given.txt") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
