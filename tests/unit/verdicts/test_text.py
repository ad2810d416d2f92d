# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import pytest

from perfweb.runs.models import Run
from perfweb.verdicts.text import run_text
from tests.factories import DEMO_TESTS, create_queued_run

pytestmark = pytest.mark.django_db


def test_the_text_has_a_sentence_and_a_line_for_each_test(run: Run) -> None:
    text = run_text(run)
    assert f"Run {run.pk}: Direct against deferred dispatch (done)" in text
    assert "direct against deferred, 95 % confidence: 1 failed, 5 faster" in text
    for test in DEMO_TESTS:
        assert sum(line.startswith(test + " ") for line in text.splitlines()) == 1


def test_lines_fit_into_a_wide_terminal(run: Run) -> None:
    assert max(map(len, run_text(run).splitlines())) <= 132


def test_the_text_of_a_run_without_results_states_it() -> None:
    run = create_queued_run()
    run.variants.create(name="a", position=0, target="linux")
    run.variants.create(name="b", position=1, target="linux")
    assert "No test has been measured." in run_text(run)
