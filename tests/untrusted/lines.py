# SPDX-License-Identifier: BSD-2-Clause
"""Counts the lines of Python that a call executes, in C, because a trace function in Python costs more than it
counts.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).with_name("lines.c")


@functools.cache
def _library() -> ctypes.PyDLL:
    """The trace function, compiled once for a process; an object stays loaded when its file is removed."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "lines.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", made, SOURCE], check=True)
        return ctypes.PyDLL(str(made))


def executed(call: Callable[[], object], without: str) -> int:
    """The lines that a call executes in this thread, without those of the file `without`."""
    library, set_trace = _library(), ctypes.pythonapi.PyEval_SetTrace
    set_trace.argtypes, set_trace.restype = [ctypes.c_void_p, ctypes.py_object], None
    file = without.encode()
    ctypes.c_char_p.in_dll(library, "excluded").value = file
    lines = ctypes.c_long.in_dll(library, "lines")
    before = lines.value
    set_trace(ctypes.cast(library.count, ctypes.c_void_p), None)
    try:
        call()
    finally:
        set_trace(None, None)
    return lines.value - before
