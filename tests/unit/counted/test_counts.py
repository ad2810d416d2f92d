# SPDX-License-Identifier: BSD-2-Clause
"""The plugin's file becomes costs by function."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.counted.costs import Cost, Window
from runners.counted import counts
from runners.counted.counts import Symbols
from runners.counted.errors import CountedError

TEXT = 0xFFFFFFFF81000000
MAP = """\
0000000000000000 D irq_stack_union
ffffffff81000000 T _stext
ffffffff81000100 T tcp_v4_rcv
ffffffff81000200 t tcp_v4_rcv.cold
ffffffff81000300 T __x64_sys_read
ffffffff81000300 T ksys_read
ffffffff81000400 t helper.constprop.0
ffffffff81000500 t helper
ffffffff81000700 T _etext
ffffffff82000000 D data
"""
SYMBOLS = Symbols(MAP.splitlines())


def record(offset: int, count: int, accesses: int = 0, locked: int = 0) -> str:
    return f"I {TEXT + offset:x} {count} {accesses} {locked}\n"


def test_addresses_become_functions() -> None:
    printed = [
        "W 7\n",
        record(0x100, 3, 1),
        record(0x210, 2, 2, 1),
        record(0x3FF, 5),
        record(0x4FF, 1),
        record(0x600, 1),
    ]
    (window,) = counts.read(printed, SYMBOLS).windows
    assert window.user == 7
    assert window.functions == {
        "tcp_v4_rcv": Cost(5, 2, 3), "ksys_read": Cost(5, 0, 0), "helper": Cost(2, 0, 0),
    }  # fmt: skip
    assert window.kernel() == Cost(12, 2, 3)


def test_code_behind_the_kernel_belongs_to_no_function() -> None:
    for address in (0, TEXT - 1, TEXT + 0x700, 0xFFFFFFFFC0000000):
        assert SYMBOLS.function(address) == counts.OUTSIDE
    assert SYMBOLS.function(TEXT + 0x6FF) == "helper"


def test_what_follows_the_last_mark_is_no_window() -> None:
    found = counts.read(["W 0\n", record(0x100, 1), "X\n", "W 3\n", record(0x300, 9), record(0x100, 2)], SYMBOLS)
    assert len(found.windows) == 1
    assert counts.hottest(found.rest) == "ksys_read"


def test_no_function_is_hottest_without_half_of_the_instructions() -> None:
    found = counts.read(["X\n", "W 3\n", record(0x300, 4), record(0x100, 4), record(0x500, 4)], SYMBOLS)
    assert counts.hottest(found.rest) == ""
    assert counts.hottest(Window()) == ""


@pytest.mark.parametrize("line", ["I\n", "Q 1\n", "I xyz 1 1 0\n", "W\n", "I ffffffff81000100 1 1 0\n", "W x\n", "\n"])
def test_a_damaged_file_is_refused(line: str) -> None:
    with pytest.raises(CountedError, match="damaged"):
        counts.read([line], SYMBOLS)


@given(st.lists(st.text(max_size=30)))
def test_any_file_is_read_or_refused(lines: list[str]) -> None:
    with contextlib.suppress(CountedError):
        counts.read(lines, SYMBOLS)


def test_a_map_without_functions_is_refused() -> None:
    with pytest.raises(CountedError, match="no functions"):
        Symbols(["0000000000000000 D irq_stack_union", "garbage", "zz T f"])


@given(st.dictionaries(st.integers(0, 0x6FF), st.tuples(st.integers(1, 99), st.integers(0, 9), st.booleans())))
def test_functions_sum_to_the_whole(found: dict[int, tuple[int, int, bool]]) -> None:
    printed = ["W 0\n", *(record(at, count, more, int(locked)) for at, (count, more, locked) in found.items())]
    (window,) = counts.read(printed, SYMBOLS).windows
    assert window.kernel() == Cost(
        sum(count for count, _, _ in found.values()),
        sum(count for count, _, locked in found.values() if locked),
        sum(more for _, more, _ in found.values()),
    )
