# SPDX-License-Identifier: BSD-2-Clause
"""One installed build for all tests of the stack, and the settings of the Linux end."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.stack.topology import Installed, Topology

SETTINGS: Counter[str] = Counter()

# Only x86 can be built for one CPU; test_refused_builds.py has meson's error elsewhere.
collect_ignore = [] if platform.machine() == "x86_64" else ["test_up.py"]


@pytest.fixture(scope="session")
def installed() -> Iterator[Installed]:
    """The release build, installed, with two more layouts of it."""
    build = Installed()
    yield build
    build.remove()


@pytest.fixture
def topology(installed: Installed, record_property: Callable[[str, object], None]) -> Iterator[Topology]:
    """left, dut and right; nothing is booted yet. The settings of the Linux end are stored with the result."""
    with Topology(installed) as network:
        yield network
        settings = network.settings("left")
        record_property("linux", settings)
        SETTINGS[settings] += 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Print all output of its programs and its stack when a test fails."""
    report = yield
    network = getattr(item, "funcargs", {}).get("topology")
    if report.when == "call" and report.failed and network is not None:
        report.sections.append(("logs of the children", network.logs()))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The settings of the Linux end of all tests."""
    for settings, count in SETTINGS.items():
        terminalreporter.write_line(f"Linux, the other end of {count} tests of the stack: {settings}")
