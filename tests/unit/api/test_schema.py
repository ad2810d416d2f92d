# SPDX-License-Identifier: BSD-2-Clause
"""Schemathesis asks every address for what the OpenAPI document allows, and for what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import positive_data_acceptance

from perfweb.runs.models import Run
from perfweb.wsgi import application

SCHEMA = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application)

# It would have every string accepted that a pattern allows: also dates that no calendar has.
EXCLUDED = [positive_data_acceptance]


@pytest.fixture
def one_connection(db: None) -> Iterator[None]:
    """Keep the connection from request to request, as Django's client does, and with it the transaction of the test."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@SCHEMA.parametrize()
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
def test_answers_are_those_of_the_document(case: Case[Any], run: Run, one_connection: None) -> None:
    """What the document allows is asked of a run that exists, so that there is something to find."""
    if "number" in case.path_parameters and case.meta and case.meta.generation.mode.is_positive:
        case.path_parameters["number"] = run.pk
    # Its client takes compressed answers and cannot read them.
    case.call_and_validate(excluded_checks=EXCLUDED, headers={"Accept-Encoding": "identity"})
