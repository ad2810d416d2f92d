# SPDX-License-Identifier: BSD-2-Clause
"""The description of the machine on a page of measurements."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path


def here_and_now() -> str:
    """The day, the CPUs and the kernel, after "Measured"."""
    today = time.strftime("%Y-%m-%d", time.gmtime())
    kernel = platform.release().partition("-")[0]
    return f"on {today}: {os.cpu_count()} CPUs ({_model()}), Linux {kernel}"


def _model() -> str:
    """The name of the CPU."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
