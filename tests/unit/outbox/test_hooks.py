# SPDX-License-Identifier: BSD-2-Clause
"""Letters to programs, with a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from perfweb.outbox import hooks
from perfweb.outbox.models import Letter
from perfweb.outbox.services import deliver, post
from tests.unit.outbox.programs import MEGABYTE, Program, running

pytestmark = pytest.mark.django_db


@pytest.fixture
def program() -> Iterator[Program]:
    with running() as server:
        yield server


def posted(program: Program) -> Letter:
    post(hooks.CHANNEL, "alert.1.confirmed", {"url": program.url, "data": {"alert": 1}})
    deliver()
    return Letter.objects.get()


def test_a_program_gets_the_data_once(program: Program) -> None:
    letter = posted(program)
    deliver()
    assert program.got == [("alert.1.confirmed.1", {"alert": 1})]
    assert (letter.due, letter.problem) == (None, "")


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_a_program_that_is_busy_is_queried_again(program: Program, status: int) -> None:
    program.status = status
    letter = posted(program)
    assert letter.due is not None
    assert str(status) in letter.problem


@pytest.mark.parametrize("status", [400, 404, 410, 302])
def test_a_refusal_is_kept_with_its_reason_and_no_redirect_followed(program: Program, status: int) -> None:
    program.status = status
    letter = posted(program)
    assert letter.due is None
    assert str(status) in letter.problem
    assert len(program.got) == 1


def test_an_answer_without_an_end_is_not_read(program: Program) -> None:
    program.status, program.endless = 200, True
    letter = posted(program)
    assert (letter.due, letter.problem) == (None, "")
    assert program.sent < 64 * MEGABYTE


def test_a_program_that_is_away_is_queried_again(program: Program) -> None:
    post(hooks.CHANNEL, "alert.1.confirmed", {"url": "http://127.0.0.1:1/", "data": {}})
    deliver()
    letter = Letter.objects.get()
    assert letter.due is not None
    assert "no answer" in letter.problem
