# SPDX-License-Identifier: BSD-2-Clause
"""Imports point one way, as docs/explanation/architecture.md says."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "playbooks" / "module_utils"
MAY_IMPORT = {
    "perfweb.stats": set(),
    "perfweb.accounts": set(),
    "perfweb.outbox": set(),
    "perfweb.manual": set(),
    "perfweb.lab": {"perfweb.stats"},
    "perfweb.builds": {"perfweb.lab", "perfweb.stats"},
    "perfweb.runs": {"playbooks", "perfweb.builds", "perfweb.lab", "perfweb.accounts", "perfweb.stats"},
    "perfweb.api": {
        "perfweb.tracking",
        "perfweb.submissions",
        "perfweb.reports",
        "perfweb.runs",
        "perfweb.builds",
        "perfweb.lab",
        "perfweb.accounts",
        "perfweb.stats",
    },
    "perfweb.imports": {
        "runners",
        "perfweb.runs",
        "perfweb.builds",
        "perfweb.lab",
        "perfweb.accounts",
        "perfweb.stats",
    },
    "perfweb.reports": {
        "perfweb.manual",
        "perfweb.runs",
        "perfweb.builds",
        "perfweb.lab",
        "perfweb.accounts",
        "perfweb.stats",
    },
    "perfweb.submissions": {
        "runners",
        "perfweb.reports",
        "perfweb.runs",
        "perfweb.builds",
        "perfweb.lab",
        "perfweb.accounts",
        "perfweb.stats",
    },
    "perfweb.tracking": {
        "perfweb.forges",
        "perfweb.outbox",
        "perfweb.reports",
        "perfweb.runs",
        "perfweb.builds",
        "perfweb.lab",
        "perfweb.accounts",
        "perfweb.stats",
    },
    "perfweb.mail": {
        "perfweb.outbox",
        "perfweb.submissions",
        "perfweb.reports",
        "perfweb.runs",
        "perfweb.builds",
        "perfweb.lab",
        "perfweb.accounts",
        "perfweb.stats",
    },
    "perfweb.forges": {
        "perfweb.submissions",
        "perfweb.outbox",
        "perfweb.reports",
        "perfweb.runs",
        "perfweb.builds",
        "perfweb.lab",
        "perfweb.accounts",
        "perfweb.stats",
    },
    "perfweb.operations": {
        "runners",
        "perfweb.tracking",
        "perfweb.outbox",
        "perfweb.runs",
        "perfweb.builds",
        "perfweb.lab",
        "perfweb.accounts",
    },
    "perfweb.client": set(),
    "runners": {"perfweb.runs", "perfweb.builds", "perfweb.lab", "perfweb.stats", "playbooks"},
    "playbooks": set(),
}
PARTS = set(MAY_IMPORT)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # What hosts and controller share is called ansible.module_utils on a host.
            shared = path.parent == SHARED and node.level == 1
            assert node.level == 0 or shared, f"{path}: a relative import hides what it imports"
            package = f"playbooks.module_utils.{node.module or ''}".rstrip(".") if shared else node.module
            yield from (f"{package}.{alias.name}" for alias in node.names)


def part_of(module: str) -> str | None:
    return next((part for part in PARTS if module == part or module.startswith(f"{part}.")), None)


@pytest.mark.parametrize("part", sorted(PARTS))
def test_imports_point_one_way(part: str) -> None:
    folder = ROOT / part.replace(".", "/")
    wrong = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in folder.rglob("*.py")
        for module in imported(path)
        if part_of(module) not in {None, part, *MAY_IMPORT[part]}
    }
    assert wrong == set()


def test_statistics_know_no_django() -> None:
    for path in (ROOT / "perfweb" / "stats").rglob("*.py"):
        assert not any(module.split(".")[0] == "django" for module in imported(path)), path


def test_the_stack_does_not_know_the_service() -> None:
    for path in (ROOT / "stack").rglob("*"):
        if path.is_file() and path.suffix in {".c", ".h", ".build"}:
            assert "perfweb" not in path.read_text(encoding="utf-8"), path
