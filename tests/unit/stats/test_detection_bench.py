# SPDX-License-Identifier: BSD-2-Clause
"""How `./dev bench tracking` counts: each alarm once, even if it is withdrawn later, and the step only after it."""

import math
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.bench.noise import fits
from tests.bench.tracking import STEP, Score, alarms, false_alarms, judge

SERIES = [1.0] * 100


def counts(score: Score) -> tuple[int, int, float]:
    return score.found, score.wrong, score.delays[-1]


def test_places_that_follow_each_other_closely_are_one_alarm() -> None:
    assert alarms([30, 10, 12, 17, 10]) == [[10, 12, 17], [30]]


def test_what_is_dropped_later_was_false_all_the_same() -> None:
    def nervous(values: Sequence[float]) -> list[int]:
        return [20] if len(values) == 25 else [70] if len(values) > 80 else []

    assert false_alarms(nervous, SERIES) == 2


def test_a_step_is_found_where_it_is_and_not_before_it_came() -> None:
    score = Score()
    judge(lambda values: [STEP - 2] if len(values) > 50 else [], SERIES, score)
    assert counts(score) == (0, 0, math.inf)
    judge(lambda values: [STEP + 1] if len(values) >= STEP + 4 else [], SERIES, score)
    assert counts(score) == (1, 0, 4)
    judge(lambda values: [STEP + 20] if len(values) >= STEP + 30 else [], SERIES, score)
    assert counts(score) == (1, 1, math.inf)
    assert score.cell() == "33% | - | 50%"


def test_one_alarm_may_begin_before_the_step_and_reach_to_it() -> None:
    score = Score()
    judge(lambda values: [STEP - 6, STEP - 2] if len(values) > STEP else [], SERIES, score)
    assert counts(score) == (1, 0, 1)


@pytest.mark.parametrize(
    ("words", "problem"), [(["--series", "0"], "at least one"), (["--quick", "--write"], "says nothing")]
)
def test_words_that_make_no_sense_are_refused(words: list[str], problem: str) -> None:
    done = bench(*words)
    assert done.returncode == 2
    assert problem in done.stderr


def test_the_table_has_every_method_and_the_year_of_freebsd() -> None:
    done = bench("--quick")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.startswith("| levels (perfweb) | ") for line in lines) == 2
    head = next(line for line in lines if line.startswith("| | false |"))
    assert head.count("|") == next(line for line in lines if line.startswith("| three sigma")).count("|")
    assert "| levels (perfweb) | r284739, r285702 | r284739, r285702 | r284739, r285702 |" in lines


def test_the_table_of_noise_has_false_alarms_and_found_steps() -> None:
    done = bench("--noise", "--quick")
    assert done.returncode == 0, done.stderr
    assert any(re.match(r"\| white \| Normal noise. \| \d\.\d\d \| \d+% \|", line) for line in done.stdout.splitlines())


def test_no_round_of_branches_begins_that_would_end_too_late() -> None:
    assert fits(0, 0, 1)
    assert fits(2, 40, 1)
    assert not fits(2, 41, 1)


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.bench.tracking", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
