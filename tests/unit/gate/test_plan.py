# SPDX-License-Identifier: BSD-2-Clause
"""The jobs of `./dev test`: every test file belongs to exactly one, and each change has its jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkouts import Checkout
from tests.gate import plan
from tests.gate.__main__ import budget
from tests.gate.scheduler import Job


@pytest.fixture
def setting(tmp_path: Path) -> plan.Setting:
    return plan.Setting(tmp_path)


def files_of(job: Job) -> Iterator[str]:
    """The test files that a job's pytest collects."""
    words = [word for step in job.steps if "pytest" in step for word in step]
    left_out = {word.removeprefix("--ignore=") for word in words if word.startswith("--ignore=")}
    for path in (word for word in words if word.startswith("tests/")):
        found = plan.tracked(f"{path}/test_*.py", path)
        yield from (name for name in found if not any(Path(name).is_relative_to(other) for other in left_out))


def test_every_test_file_is_run_by_one_job(setting: plan.Setting) -> None:
    counts = Counter(name for job in plan.test_jobs(setting) for name in files_of(job) if "/test_" in name)
    assert [name for name, count in counts.items() if count > 1] == []
    assert [name for name in plan.tracked("tests/*test_*.py") if name not in counts] == []


def test_names_are_unique_and_those_of_dependencies_exist(setting: plan.Setting) -> None:
    jobs = [*plan.all_jobs(setting), *plan.partial_jobs(setting)]
    names = Counter(job.name for job in jobs)
    assert max(names.values()) == 1
    assert {name for job in jobs for name in job.after} <= set(names)
    assert {name for _, chosen in plan.DEPENDENTS for name in chosen} <= set(names)


def test_every_job_has_a_weight(setting: plan.Setting) -> None:
    assert {job.name for job in plan.all_jobs(setting)} == set(plan.WEIGHTS)


def test_every_path_of_the_table_exists() -> None:
    assert [prefix for prefix, _ in plan.DEPENDENTS if not plan.tracked(f"{prefix}*")] == []


@pytest.mark.parametrize(
    ("changed", "some", "none"),
    [
        (["docs/howto/plans.md"], {"docs"}, {"unit", "stack", "lint-mypy"}),
        (["docs/reference/tunables.md"], {"docs", "docs-tunables"}, {"unit"}),
        (
            ["perfweb/runs/services.py"],
            {"unit", "browser", "lint-mypy", "one-run"},
            {"stack", "integration", "integration-faults"},
        ),
        (
            ["stack/net/if.c"],
            {"stack", "suite-address", "lint-clang", "lint-locking", "fuzz", "docs"},
            {"unit", "browser", "lint-mypy"},
        ),
        (["docs/howto/plans.md", "stack/net/if.c"], {"docs", "suite-thread"}, {"unit"}),
        (["pyproject.toml"], {"unit", "stack", *plan.INTEGRATION, "integration", "lint-ruff"}, {"docs"}),
        (["runners/ansible/driver.py"], {"unit", "lab", "integration", "platform"}, set()),
        ([], set(), {"unit"}),
    ],
)
def test_a_change_selects_the_jobs_that_it_may_break(
    setting: plan.Setting, changed: list[str], some: set[str], none: set[str]
) -> None:
    chosen = plan.names_for(changed, [job.name for job in plan.all_jobs(setting)])
    assert some <= chosen
    assert chosen.isdisjoint(none)


def test_changes_are_those_since_the_main_branch_committed_or_not(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.put("a", "1\n")
    checkout.put("b", "1\n")
    checkout.commit("first")
    checkout.git("branch", "-M", "main")
    assert plan.changed_files(tmp_path) == []
    checkout.git("checkout", "-q", "-b", "work")
    checkout.put("a", "2\n")
    checkout.commit("second")
    checkout.put("b", "2\n")
    checkout.put("folder/c d", "1\n")
    assert plan.changed_files(tmp_path) == ["a", "b", "folder/c d"]


def test_jobs_of_the_thorough_run_are_those_of_the_gate_with_more_tests(tmp_path: Path) -> None:
    gate, thorough = (plan.test_jobs(plan.Setting(tmp_path, thorough)) for thorough in (False, True))
    assert [job.name for job in gate] == [job.name for job in thorough]
    pytest_steps = [step for job in thorough for step in job.steps if "pytest" in step]
    assert pytest_steps
    assert all("--thorough" in step for step in pytest_steps)
    assert budget(thorough=False) < budget(thorough=True)
