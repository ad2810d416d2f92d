# SPDX-License-Identifier: BSD-2-Clause
"""Measures how long a call holds the interpreter: its longest line of Python, in CPU time (held.c)."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import cast

SOURCE = Path(__file__).with_name("held.c")


@dataclass(frozen=True)
class Step:
    """The longest line of a call: CPU time in nanoseconds, its number in the trace, its place in the source."""

    nanoseconds: int
    number: int
    place: str


@functools.cache
def _library() -> ctypes.PyDLL:
    """The trace function, compiled once for a process; an object stays loaded when its file is removed."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "held.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", made, SOURCE], check=True)
        return ctypes.PyDLL(str(made))


def write_count() -> None:
    """Under callgrind: write what has been counted since the last time to a file of its own."""
    _library().write_count()


def longest_step(call: Callable[[], object], count: int = 0) -> Step:
    """The longest line of a call.

    Under `callgrind --instr-atstart=no` the instructions of the processor are counted for the one with number `count`.
    """
    library, set_trace = _library(), ctypes.pythonapi.PyEval_SetTrace
    set_trace.argtypes, set_trace.restype = [ctypes.c_void_p, ctypes.py_object], None
    library.begin(ctypes.c_long(count))
    set_trace(ctypes.cast(library.notice, ctypes.c_void_p), None)
    try:
        call()
    finally:
        set_trace(None, None)
    taken, number, line = (ctypes.c_long.in_dll(library, name).value for name in ("longest", "longest_event", "line"))
    code = cast("CodeType", ctypes.py_object.in_dll(library, "code").value)
    return Step(taken, number, f"{Path(code.co_filename).name}:{line}")
