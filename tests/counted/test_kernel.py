# SPDX-License-Identifier: BSD-2-Clause
"""Changes planted in a real kernel, which is built and booted: each is named with its cost, or equal.

The kernel is Debian's package of sources, which `runners/install.sh linux-source` has unpacked. Kernels are kept below
var/counted by their content; a cold build takes minutes, so these tests are part of the thorough run only.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from perfweb.counted.comparison import FunctionDifference, LoadComparison, Verdict
from perfweb.counted.costs import Cost
from runners.counted.command import Request, Result, run
from runners.counted.errors import BootError, BuildError
from runners.counted.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
LINUX = ROOT / "var" / "linux"
VAR = ROOT / "var" / "counted"
TCP = "net/ipv4/tcp_ipv4.c"
RECEIVE = "int tcp_v4_rcv(struct sk_buff *skb)"
FIRST = "\tif (skb->pkt_type != PACKET_HOST)"
ROUND_TRIP = "counted.tcp.rr/local/ipv4"

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]


def planted(text: str, path: str = TCP, function: str = RECEIVE, before: str = FIRST) -> bytes:
    """A patch that puts a line before the first statement of a function."""

    def put(source: str) -> str:
        at = source.index(before, source.index(function))
        return source[:at] + text + source[at:]

    return patch(path, put)


def patch(path: str, change: Callable[[str], str]) -> bytes:
    before = (LINUX / path).read_text(encoding="utf-8")
    old, new = (text.splitlines(keepends=True) for text in (before, change(before)))
    return "".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")).encode()


def count(patch: bytes, only: str = "counted.tcp.rr/local", limit: float = 600, config: Sequence[str] = ()) -> Result:
    request = Request(LINUX, [("planted", patch)], VAR, configuration=config, only=only, limit=limit)
    return run(request, Progress(io.StringIO()))


def by_name(result: Result) -> dict[str, LoadComparison]:
    return {load.name: load for load in result.loads}


def test_ten_nops_are_twenty_instructions_of_a_round_trip() -> None:
    loads = by_name(count(planted('\tasm volatile(".rept 10; nop; .endr");\n'), only=""))
    assert loads[ROUND_TRIP].functions == (FunctionDifference("tcp_v4_rcv", Cost(20.0, 0, 0)),)
    assert loads[ROUND_TRIP].verdict == Verdict.MORE
    for name, load in loads.items():
        if "tcp" not in name or name.endswith("ipv6"):
            assert load.functions == (), name


def test_an_atomic_is_a_locked_instruction() -> None:
    change = planted("\t{ static atomic_t planted; atomic_inc(&planted); }\n")
    (one,) = by_name(count(change))[ROUND_TRIP].functions
    assert (one.name, one.cost.instructions, one.cost.locked) == ("tcp_v4_rcv", 2.0, 2.0)


def test_a_change_of_the_layout_is_equal() -> None:
    unused = "noinline __attribute__((used)) static long planted(long a, long b)\n{\n\tlong c = 0;\n\n"
    unused += "\twhile (a--)\n\t\tc += b * a + (c >> 3);\n\treturn c;\n}\n\n"
    result = count(planted(unused, before=RECEIVE), only="")
    assert {load.name: load.functions for load in result.loads} == dict.fromkeys(by_name(result), ())


def test_a_change_off_the_path_is_equal() -> None:
    text = '\tasm volatile(".rept 10; nop; .endr");\n'
    result = count(planted(text, "net/ipv4/arp.c", "static int arp_rcv(", "\tif (dev->flags & IFF_NOARP"))
    assert [load.verdict for load in result.loads] == [Verdict.EQUAL, Verdict.EQUAL]


def test_a_kernel_that_does_not_build() -> None:
    with pytest.raises(BuildError, match=rf"patched: it does not build:\n{TCP}:\d+: error: .*missing"):
        count(planted("\tmissing++;\n"))


def test_a_new_warning_is_shown() -> None:
    result = count(planted("\t{ int planted; }\n"))
    assert [warning.path for warning in result.warnings] == [TCP]
    assert "unused variable" in result.warnings[0].text


def test_a_kernel_that_panics_under_load() -> None:
    with pytest.raises(BootError, match="planted panic"):
        count(planted('\tpanic("planted panic");\n'))


def test_a_kernel_with_an_oops_names_the_function() -> None:
    with pytest.raises(BootError, match=r"oops: BUG: kernel NULL pointer dereference.* \(in tcp_v4_rcv\)"):
        count(planted("\tWRITE_ONCE(*(int *)8, 1);\n"))


def test_a_kernel_that_hangs_names_the_function() -> None:
    with pytest.raises(BootError, match="hang: it does not end within 40 s, under load, in tcp_v4_rcv"):
        count(planted("\tfor (;;)\n\t\tbarrier();\n"), limit=40)


def test_a_kernel_that_warns() -> None:
    with pytest.raises(BootError, match=rf"warning: WARNING: CPU: 0 PID: 1 at {TCP}:\d+ tcp_v4_rcv"):
        count(planted("\tWARN_ON_ONCE(1);\n"))


def test_a_lock_that_is_taken_twice() -> None:
    twice = "\t{ static DEFINE_SPINLOCK(planted); spin_lock(&planted); spin_lock(&planted); }\n"
    with pytest.raises(BootError, match="locking error: WARNING: possible recursive locking detected"):
        count(planted(twice), limit=60, config=["debug"])
