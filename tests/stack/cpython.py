# SPDX-License-Identifier: BSD-2-Clause
"""CPython's own tests of sockets, signals and processes, as Debian packages them (libpython3.11-testsuite)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.stack.topology import PYTHON

HANG_SECONDS = 1500
"""Seconds after which a suite counts as hanging: the longest takes two minutes on an idle machine."""

SUITES = {
    "test_asyncio": (
        "test.test_asyncio.test_base_events.*",
        "test.test_asyncio.test_events.*",
        "test.test_asyncio.test_sendfile.*",
        "test.test_asyncio.test_server.*",
        "test.test_asyncio.test_sock_lowlevel.*",
        "test.test_asyncio.test_ssl.*",
        "test.test_asyncio.test_streams.*",
        "test.test_asyncio.test_subprocess.*",
        "test.test_asyncio.test_unix_events.*",
    ),
    "test_ftplib": (),
    "test_httpservers": (),
    "test_signal": (),
    "test_socket": (),
    "test_ssl": (),
    "test_subprocess": (),
}
"""The suites, with patterns of the tests that the gate runs: all, or those with sockets and processes."""

INAPPLICABLE = {
    "ThreadedVSOCKSocketStreamTest": "AF_VSOCK is the kernel's: it hangs natively, too, where the kernel has no peer",
}
"""Patterns of the tests that do not apply, with the reason. docs/reference/stack-api.md has the limits of the stack."""

FAILED = re.compile(r"^(?:FAIL|ERROR): \S+ \(([\w.]+)\)", re.MULTILINE)


def command(suite: str, only: Iterable[str] = ()) -> list[str]:
    """The command that runs a suite, or those of its tests that match a pattern."""
    # A shell's background job ignores SIGINT, and so would its children.
    words = ["env", "--default-signal=INT", PYTHON, "-m", "test", "-v", "--timeout", str(HANG_SECONDS), suite]
    words += [word for pattern in only for word in ("-m", pattern)]
    return words + [word for pattern in INAPPLICABLE for word in ("-i", pattern)]


def failures(report: str) -> set[str]:
    """The full names of the tests that failed."""
    return set(FAILED.findall(report))
