# SPDX-License-Identifier: BSD-2-Clause
"""Schemathesis sends requests to every address that the OpenAPI document allows, and some that it forbids."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import positive_data_acceptance

from perfweb.accounts.models import Role, User
from perfweb.runs.models import Run
from perfweb.submissions.models import Submission, SubmissionTransition
from perfweb.wsgi import application
from tests.factories import create_queued_run, create_submission
from tests.unit.accounts.conftest import bearer, forget_limits

SCHEMA = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application)

CHANGES = SCHEMA.include(method="POST")

# It would require that every string is accepted that a pattern allows: also dates that no calendar has.
EXCLUDED = [positive_data_acceptance]


@SCHEMA.parametrize()
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
def test_answers_are_those_of_the_document(case: Case[Any], run: Run, one_connection: None) -> None:
    """Allowed requests are about an existing run, so that they find something."""
    if "number" in case.path_parameters and case.meta and case.meta.generation.mode.is_positive:
        case.path_parameters["number"] = run.pk
    forget_limits()
    # Its client accepts compressed responses but cannot read them.
    case.call_and_validate(excluded_checks=EXCLUDED, headers={"Accept-Encoding": "identity"})


@pytest.fixture(params=[Role.READER, Role.SUBMITTER], ids=["reader", "submitter"])
def credentials(db: None, request: pytest.FixtureRequest) -> dict[str, str]:
    """The header of a user who owns none of the objects."""
    return bearer(User.objects.create_user("eve", role=request.param))


@CHANGES.parametrize()
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
def test_users_cannot_change_objects_of_others(
    case: Case[Any], credentials: dict[str, str], others: dict[str, int], one_connection: None
) -> None:
    before = everything()
    if "number" in case.path_parameters and case.meta and case.meta.generation.mode.is_positive:
        case.path_parameters["number"] = others["runs" if "/runs/" in case.path else "submissions"]
    forget_limits()
    answer = case.call(headers={"Accept-Encoding": "identity", **credentials})
    case.validate_response(answer, excluded_checks=EXCLUDED)
    left_out = answer.request.headers.get("Authorization") != credentials["Authorization"]
    assert answer.status_code >= 400
    assert left_out or answer.status_code != 401
    assert everything() == before


@pytest.fixture
def others(db: None) -> dict[str, int]:
    """A waiting submission of a user, and a run of the same user."""
    submission, run = create_submission(), create_queued_run()
    Run.objects.filter(pk=run.pk).update(requested_by=submission.author.username)
    return {"submissions": submission.pk, "runs": run.pk}


def everything() -> list[Any]:
    return [list(model.objects.order_by("pk").values()) for model in (Submission, SubmissionTransition, Run)]
