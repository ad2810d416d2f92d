# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C ends a program without a traceback, whatever its parent ignores and whenever the signal arrives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, time

class Slow:
    def __del__(self):
        print("begun", flush=True)
        time.sleep(60)

class SlowName:
    def __set_name__(self, owner, name):
        print("begun", flush=True)
        time.sleep(60)

match sys.argv[1]:
    case "in a destructor":
        Slow()  # Python drops the exceptions of destructors
    case "while a class is made":
        class Named:
            name = SlowName()  # Python 3.11 raises a RuntimeError in place of each exception
    case "in a cleanup that fails":
        try:
            print("begun", flush=True)
            time.sleep(60)
        finally:
            raise OSError("cleanup")
print("begun", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("where", ["anywhere", "in a destructor", "while a class is made", "in a cleanup that fails"])
@pytest.mark.parametrize("parent", ["--default-signal=INT", "--ignore-signal=INT"])
def test_one_interrupt_ends_it(tmp_path: Path, parent: str, where: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    argv = ["env", parent, sys.executable, "-m", "runners.interruptible", "program", where]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3]}"}
    with subprocess.Popen(
        argv, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        running.send_signal(signal.SIGINT)
        _, output = running.communicate(timeout=50)
    assert (running.returncode, output) == (130, "")
