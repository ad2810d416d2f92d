# SPDX-License-Identifier: BSD-2-Clause
"""The wait for a condition. Its limit is for what never happens, not for a busy machine."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 600) -> None:
    """Wait until `condition` holds; fail the test if it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.05)
