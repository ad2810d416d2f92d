# SPDX-License-Identifier: BSD-2-Clause
"""All pairs of values of all knobs, in the builds with checks; and combinations that are refused."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.stack.combinations import REAL_TIME, REFUSALS, SANITIZERS, Build, FailedError, loader_conf
from tests.stack.covering import Row
from tests.stack.exhaust import rows_of

CPUS = 2


@pytest.fixture(scope="module", params=SANITIZERS)
def build(request: pytest.FixtureRequest) -> Iterator[Build]:
    """The build with each sanitizer."""
    checked = Build(request.param)
    yield checked
    checked.installed.remove()


def each(rows: list[Row], fn: Callable[[Row, Path], None]) -> None:
    """Call a function for each, some in parallel, with a directory; report all failures with their loader.conf."""

    def attempt(row: Row) -> str | None:
        with tempfile.TemporaryDirectory(prefix="stack-test-") as directory:
            try:
                fn(row, Path(directory))
            except FailedError as failed:
                return f"{loader_conf(row)}{failed}"
        return None

    with ThreadPoolExecutor(CPUS) as pool:
        failures = [failure for failure in pool.map(attempt, rows) if failure is not None]
    assert not failures, f"{len(failures)} of {len(rows)} fail\n\n" + "\n\n".join(failures[:5])


def test_all_pairs_boot_carry_traffic_under_loss_and_pass_the_socket_tests(build: Build, tmp_path: Path) -> None:
    each(rows_of("pairs", build.knobs(tmp_path)), build.carries)


def _may_be_real_time() -> bool:
    """Whether this user has the permission, by a capability or a limit; tried on the calling thread."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, *before)
    return True


@pytest.mark.parametrize("sched", REAL_TIME["machine.sched"])
def test_real_time_threads_carry_traffic_for_who_may_have_them(build: Build, tmp_path: Path, sched: str) -> None:
    row = {"machine.sched": sched, "machine.spin_us": "0", "lock.mutex": "block"}
    if _may_be_real_time():
        build.carries(row, tmp_path)
    else:
        build.refuses(row, tmp_path, sentence="needs the capability CAP_SYS_NICE")


def test_what_cannot_be_had_together_is_refused_with_a_sentence(build: Build, tmp_path: Path) -> None:
    knobs = build.knobs(tmp_path)
    for refusal in REFUSALS:
        values = [[value for value in knobs[name] if is_it(value)] for name, is_it in refusal.values.items()]
        rows = [dict(zip(refusal.values, row, strict=True)) for row in itertools.product(*values)]
        assert rows, f"no value that is there makes the stack say '{refusal.sentence}'"
        each(rows, partial(build.refuses, sentence=refusal.sentence))
