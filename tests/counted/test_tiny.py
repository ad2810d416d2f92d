# SPDX-License-Identifier: BSD-2-Clause
"""Changes planted in the tiny kernel, from the patch to the verdict: what test_kernel.py does with Linux."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from perfweb.counted.comparison import FunctionDifference
from perfweb.counted.costs import Cost
from runners.counted import table
from runners.counted.command import Request, Result, run
from runners.counted.progress import Progress
from tests.counted.sources import TINY, diff, in_tiny, tiny_repository

Count = Callable[[bytes], Result]
LAYOUT = "__attribute__((noinline, used)) static int unused(int a) { return a * 3; }\n"


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> Count:
    folder = tmp_path_factory.mktemp("tiny")
    base = tiny_repository(folder / "linux")

    def compare(patch: bytes) -> Result:
        request = Request(base, [("x.patch", patch)], folder / "var", boots=2, limit=120)
        return run(request, Progress(io.StringIO()))

    return compare


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ('__asm__ volatile(".rept 10; nop; .endr");', Cost(10, 0, 0)),
        ('static int planted; __asm__ volatile("lock incl %0" : "+m"(planted));', Cost(1, 1, 2)),
    ],
)
def test_a_change_is_named_with_its_cost(count: Count, text: str, cost: Cost) -> None:
    for load in count(in_tiny(text)).loads:
        assert load.functions == (FunctionDifference("tcp_v4_rcv", cost),)


def test_a_changed_layout_is_equal(count: Count) -> None:
    before = (TINY / "kernel.c").read_text(encoding="utf-8")
    place = "__attribute__((noinline)) void\ntcp_v4_rcv"
    result = count(diff("kernel.c", before, lambda source: source.replace(place, LAYOUT + place)))
    assert {load.functions for load in result.loads} == {()}
    base, patched = result.kernels["base"], result.kernels["patched"]
    assert len(base.commit) == 40
    assert base.commit == patched.commit
    assert base.tree != patched.tree
    assert "gcc" in base.toolchain
    assert table.document(result)["kernels"]["patched"]["tree"] == patched.tree
