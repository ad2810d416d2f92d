# SPDX-License-Identifier: BSD-2-Clause
"""One installed build for all tests of the stack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stack.topology import Installed, Topology


@pytest.fixture(scope="session")
def installed() -> Iterator[Installed]:
    """The release build, installed."""
    build = Installed()
    yield build
    build.remove()


@pytest.fixture
def topology(installed: Installed) -> Iterator[Topology]:
    """left, dut and right; nothing is booted yet."""
    with Topology(installed) as network:
        yield network
