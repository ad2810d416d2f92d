# SPDX-License-Identifier: BSD-2-Clause
"""The instructions of a basic block are counted in the output of objdump."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

STACK = Path(__file__).resolve().parents[2] / "stack"
LISTING = """\
0000000000401000 <one>:
  401000:\tpush   %rbx
  401001:\tcall   402000 <__sanitizer_cov_trace_pc>
  401006:\tmov    %rdi,%rbx
  401009:\ttest   %rbx,%rbx
  40100c:\tje     401020 <one+0x20>
  40100e:\tcall   402000 <__sanitizer_cov_trace_pc>
  401013:\tcall   403000 <other>
  401018:\tjmp    401030 <one+0x30>
  40101a:\tnopw   0x0(%rax,%rax,1)
  401020:\tcall   402000 <__sanitizer_cov_trace_pc>
  401025:\tpop    %rbx
  401026:\tret
  401027:\tnop

0000000000401030 <two>:
  401030:\tcall   402000 <__sanitizer_cov_trace_pc>
  401035:\tud2
"""


@pytest.fixture(scope="module")
def simweights() -> ModuleType:
    spec = importlib.util.spec_from_file_location("simweights", STACK / "tools" / "simweights.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_block_ends_at_the_next_one_or_at_a_jump(simweights: ModuleType) -> None:
    assert list(simweights.weights(LISTING.splitlines())) == [
        (0x401006, 3),
        (0x401013, 2),
        (0x401025, 2),
        (0x401035, 1),
    ]


def test_a_program_that_is_not_for_the_simulated_machine_is_refused(simweights: ModuleType) -> None:
    with pytest.raises(SystemExit, match="has no section"):
        simweights.table(Path("/bin/true"))
