# SPDX-License-Identifier: BSD-2-Clause
"""Changes planted in a real kernel that fails by them: test_planted.py has those with a cost.

The kernel is Debian's package of sources, which `runners/install.sh linux-source` has unpacked. Kernels are kept below
var/counted by their content; a cold build takes minutes, so these tests are part of the thorough run only.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from runners.counted.command import Request, Result, run
from runners.counted.errors import BootError, BuildError
from runners.counted.progress import Progress
from tests.counted.planted import FIRST, LINUX, RECEIVE, TCP_IPV4, VAR, before
from tests.counted.sources import diff

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(3600)]


def planted(text: str) -> bytes:
    """A patch that puts a line before the first statement of tcp_v4_rcv()."""
    source = (LINUX / TCP_IPV4).read_text(encoding="utf-8")
    return diff(TCP_IPV4, source, before(text, FIRST, RECEIVE))


def count(patch: bytes, only: str = "counted.tcp.rr/local", limit: float = 600, config: Sequence[str] = ()) -> Result:
    request = Request(LINUX, [("planted", patch)], VAR, configuration=config, only=only, limit=limit)
    return run(request, Progress(io.StringIO()))


def test_a_kernel_that_does_not_build() -> None:
    with pytest.raises(BuildError, match=rf"patched: it does not build:\n{TCP_IPV4}:\d+: error: .*missing"):
        count(planted("\tmissing++;\n"))


def test_a_new_warning_is_shown() -> None:
    result = count(planted("\t{ int planted; }\n"))
    assert [warning.path for warning in result.warnings] == [TCP_IPV4]
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
    with pytest.raises(BootError, match=rf"warning: WARNING: CPU: 0 PID: 1 at {TCP_IPV4}:\d+ tcp_v4_rcv"):
        count(planted("\tWARN_ON_ONCE(1);\n"))


def test_a_lock_that_is_taken_twice() -> None:
    twice = "\t{ static DEFINE_SPINLOCK(planted); spin_lock(&planted); spin_lock(&planted); }\n"
    with pytest.raises(BootError, match="locking error: WARNING: possible recursive locking detected"):
        count(planted(twice), limit=60, config=["debug"])
