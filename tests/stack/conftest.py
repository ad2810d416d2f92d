# SPDX-License-Identifier: BSD-2-Clause
"""One installed build for all tests of the stack, and what their other end was."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.stack.topology import Installed, Topology

SETTINGS: Counter[str] = Counter()

# Only x86 can be built for one CPU; test_refused_builds.py has what meson says elsewhere.
collect_ignore = [] if platform.machine() == "x86_64" else ["test_up.py"]


@pytest.fixture(scope="session")
def installed() -> Iterator[Installed]:
    """The release build, installed, with two more layouts of it."""
    build = Installed()
    yield build
    build.remove()


@pytest.fixture
def topology(installed: Installed, record_property: Callable[[str, object], None]) -> Iterator[Topology]:
    """left, dut and right; nothing is booted yet.  What the Linux end was set to is kept with the result."""
    with Topology(installed) as network:
        yield network
        settings = network.settings("left")
        record_property("linux", settings)
        SETTINGS[settings] += 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails shows all that its programs and its stack have said."""
    report = yield
    network = getattr(item, "funcargs", {}).get("topology")
    if report.when == "call" and report.failed and network is not None:
        report.sections.append(("what the children said", network.logs()))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the other end of all tests was set to."""
    for settings, count in SETTINGS.items():
        terminalreporter.write_line(f"Linux, the other end of {count} tests of the stack: {settings}")
