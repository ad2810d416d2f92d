# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import pytest
from django.test import Client

from perfweb.runs.models import Run
from tests.factories import create_run
from tests.unit.api.contract import Api


@pytest.fixture
def api(client: Client) -> Api:
    """A client whose every answer is checked against the OpenAPI document."""
    return Api(client)


@pytest.fixture
def run(db: None) -> Run:
    """A run of the demonstration plan in which one test failed on `direct`."""
    return create_run(failed_test="udp.rr/host-host/ipv4")
