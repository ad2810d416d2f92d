# SPDX-License-Identifier: BSD-2-Clause
"""The output of meson and ninja is shown when they end, also if they fail, but not after Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from runners import interruptible
from tests.stack import builds
from tests.stack.builds import ROOT

PARENT = """
import sys
from tests.stack import builds
builds.run(sys.executable, "-c", sys.argv[1], sys.argv[2])
"""
# Python prints a traceback if it is interrupted, and so does meson.
ENDLESS = "import sys, time; print('Compiler: cc', flush=True); open(sys.argv[1], 'w').close(); time.sleep(60)"


def test_output_of_a_program_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    builds.run("sh", "-c", "echo Compiler: $CC; echo a warning >&2", env={**os.environ, "CC": "cc"})
    assert capfd.readouterr() == ("", "Compiler: cc\na warning\n")


def test_output_of_a_program_that_fails_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        builds.run("sh", "-c", "echo tcp_input.c: error; exit 3")
    assert (failed.value.returncode, capfd.readouterr().err) == (3, "tcp_input.c: error\n")


def test_ctrl_c_shows_no_traceback_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT, encoding="utf-8")
    os.mkfifo(begun := tmp_path / "begun")
    with subprocess.Popen(
        interruptible.command("parent", ENDLESS, str(begun)),
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}, cwd=tmp_path, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as running:  # fmt: skip
        begun.open(encoding="ascii").close()  # waits until the program opens it
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        output, _ = running.communicate(timeout=50)
    assert (running.returncode, output) == (interruptible.INTERRUPTED, "")
