# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import pytest

from perfweb.runs.models import Run
from tests.factories import create_run

BROKEN_TEST = "udp.rr/host-host/ipv4"


@pytest.fixture
def run(db: None) -> Run:
    """A run of the demonstration plan in which one test failed on `direct`."""
    return create_run(failed_test=BROKEN_TEST)
