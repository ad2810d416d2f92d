# SPDX-License-Identifier: BSD-2-Clause
"""What watches the locks is not in the build that is measured."""

from __future__ import annotations

import pytest

from tests.stack.topology import Installed

TRACES = (b"lock order reversal", b"mutexprof", b"lockprof", b"debug.witness", b"is held already", b"kern/lock.c")


@pytest.mark.parametrize("name", ["lib/libstack.so", "bin/bootstack"])
def test_a_release_has_no_trace_of_them(installed: Installed, name: str) -> None:
    content = (installed.prefix / name).read_bytes()
    assert b"net.isr.dispatch" in content
    assert [trace for trace in TRACES if trace in content] == []
