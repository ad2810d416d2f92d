# SPDX-License-Identifier: BSD-2-Clause
"""Imports are those of the table in docs/explanation/architecture.md: each package imports only those above it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "playbooks" / "module_utils"
TOPS = ("perfweb", "runners", "playbooks")
TABLE = ROOT / "docs" / "explanation" / "architecture.md"
ROW = re.compile(r"^\| `(perfweb\.\w+|runners|playbooks)` \|.*\|([^|]*)\|$", re.MULTILINE)

Graph = dict[str, set[str]]


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # Code shared by hosts and controller is called ansible.module_utils on a host.
            shared = path.parent == SHARED and node.level == 1
            assert node.level == 0 or shared, f"{path}: a relative import hides what it imports"
            package = f"playbooks.module_utils.{node.module or ''}".rstrip(".") if shared else node.module
            yield from (f"{package}.{alias.name}" for alias in node.names)


def part_of(module: str) -> str:
    """`perfweb.runs` of `perfweb.runs.models.Run`; the parts of `perfweb` are its folders and its own modules."""
    names = module.split(".")
    return ".".join(names[:2]) if names[0] == "perfweb" else names[0]


def graph_of_code() -> Graph:
    """Which part imports which others."""
    graph: Graph = {}
    for path in (path for top in TOPS for path in (ROOT / top).rglob("*.py")):
        part = part_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        others = {part_of(module) for module in imported(path) if module.split(".")[0] in TOPS}
        graph.setdefault(part, set()).update(others - {part, "perfweb"})
    return graph


def folders(graph: Graph) -> set[str]:
    return {part for part in graph if (ROOT / part.replace(".", "/")).is_dir()} - {"perfweb.settings"}


def common(graph: Graph) -> set[str]:
    """The modules directly in `perfweb` that need no app."""
    apps = folders(graph)

    def reaches_an_app(part: str) -> bool:
        return any(other in apps or reaches_an_app(other) for other in graph[part])

    return {part for part in graph if part not in apps and not reaches_an_app(part)}


def table() -> list[tuple[str, set[str]]]:
    rows = ROW.findall(TABLE.read_text(encoding="utf-8"))
    return [(part, set(re.findall(r"[a-z]+", packages))) for part, packages in rows]


def test_no_part_imports_itself_through_others() -> None:
    TopologicalSorter(graph_of_code()).prepare()  # raises CycleError, which shows the cycle


def test_the_table_has_the_imports_of_each_package() -> None:
    graph = graph_of_code()
    apps = folders(graph)
    written = {part: sorted(packages) for part, packages in table()}
    assert written == {part: sorted(other.split(".")[-1] for other in graph[part] & apps) for part in sorted(apps)}


def test_each_package_imports_only_those_above_it_in_the_table() -> None:
    above: set[str] = set()
    for part, packages in table():
        assert packages <= above, part
        above.add(part.split(".")[-1])


def test_no_folder_has_more_than_20_modules() -> None:
    modules = Counter(path.parent for top in TOPS for path in (ROOT / top).rglob("*.py"))
    assert {folder: count for folder, count in modules.items() if count > 20 and folder.name != "migrations"} == {}


def test_packages_import_no_module_that_starts_a_process() -> None:
    graph = graph_of_code()
    apps = folders(graph)
    wrong = {f"{part} imports {other}" for part in apps for other in graph[part] - apps - common(graph)}
    assert wrong == set()


def test_the_service_imports_nothing_of_the_runners() -> None:
    wrong = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in [*(ROOT / "perfweb").rglob("*.py"), ROOT / "manage.py"]
        for module in imported(path)
        if module.split(".")[0] == "runners"
    }
    assert wrong == set()


def test_statistics_know_no_django() -> None:
    for path in (ROOT / "perfweb" / "stats").rglob("*.py"):
        assert not any(module.split(".")[0] == "django" for module in imported(path)), path


def test_the_stack_does_not_know_the_service() -> None:
    for path in (ROOT / "stack").rglob("*"):
        if path.is_file() and path.suffix in {".c", ".h", ".build"}:
            assert "perfweb" not in path.read_text(encoding="utf-8"), path
