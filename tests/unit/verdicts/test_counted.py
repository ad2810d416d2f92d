# SPDX-License-Identifier: BSD-2-Clause
"""Counted kernels are judged by function, without a margin, and every channel names the functions that differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from perfweb.forges.comments import report
from perfweb.forges.models import CommentRequest
from perfweb.mail import answers
from perfweb.runs.judging import SampleSet, counted_samples, judged
from perfweb.runs.models import Artefact, Run, Summary
from perfweb.runs.summaries import summarise
from perfweb.stats.boots import Level
from perfweb.stats.comparison import Verdict
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.status import status_of
from perfweb.verdicts.doubts import run_pairs
from perfweb.verdicts.outcome import outcome
from perfweb.verdicts.text import run_text
from perfweb.verdicts.wording import difference_words, evidence_words
from tests.factories import create_submission
from tests.unit.forges.test_comments import comment_request  # noqa: F401 (a fixture)
from tests.unit.imports.test_counted import DATAGRAM, ROUND_TRIP, document, imported
from tests.unit.pages import page, text_of

pytestmark = pytest.mark.django_db
LARGEST = f"tcp_v4_rcv +20.0000 instructions in {ROUND_TRIP}"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return imported(tmp_path)


@pytest.fixture
def submission(run: Run) -> Submission:
    made = create_submission(SubmissionState.APPROVED)
    made.runs.set([run])
    return made


def judge(run: Run) -> dict[str, Verdict]:
    """The verdicts of pages with all data, which are those of lists."""
    (pair,) = run_pairs(run, counted_samples([run])[run.pk])
    found = {one.test: one.verdict for one in pair.compared}
    summarise([run.pk])
    kept = dict(Summary.objects.filter(variant=pair.b).values_list("test", "verdict"))
    assert kept == {test: str(verdict) for test, verdict in found.items()}
    return found


def test_what_a_function_costs_is_no_matter_of_a_margin(run: Run) -> None:
    assert judge(run) == {ROUND_TRIP: Verdict.SLOWER, DATAGRAM: Verdict.IDENTICAL}
    (pair,) = run_pairs(run, counted_samples([run])[run.pk])
    result = pair.compared[0].result
    assert result.effect is not None
    assert (result.effect.level, difference_words(result)) == (Level.FUNCTIONS, f"{2000 / 9400:+.4f} %")
    assert evidence_words(result).endswith("compared by function; windows and seeds explain ±0.11\u202f% of the path")


def test_what_chance_explains_is_equivalent(tmp_path: Path) -> None:
    chance = document(400, 2, 90)
    for boot in chance["sides"]["patched"]:
        costs = boot["loads"][ROUND_TRIP]
        costs["windows"] = [[instructions + 64, *others] for instructions, *others in costs["windows"]]
        costs["functions"]["hashed"] = [
            value + 64 * (place % 3 == 0) for place, value in enumerate(costs["functions"]["hashed"])
        ]
    run = imported(tmp_path, chance)
    assert judge(run) == {ROUND_TRIP: Verdict.EQUIVALENT, DATAGRAM: Verdict.IDENTICAL}
    (pair,) = run_pairs(run, counted_samples([run])[run.pk])
    assert pair.compared[0].words == "equivalent, by function"


def test_without_functions_the_margin_is_the_spread_of_the_seeds(run: Run) -> None:
    def counts(*values: float) -> SampleSet:
        boots = list(range(len(values)))
        return SampleSet(
            list(values), boots, "instructions", "lower", seeds=dict(zip(boots, boots, strict=True)), counted=True
        )

    base = counts(9400, 9405, 9410)
    assert judged(base, counts(9405, 9410, 9415)).verdict is Verdict.EQUIVALENT
    assert judged(base, counts(9420, 9425, 9430)).verdict is Verdict.SLOWER
    Artefact.objects.filter(run=run).delete()
    assert judge(run)[ROUND_TRIP] is Verdict.SLOWER


def test_every_channel_names_the_function(
    comment_request: CommentRequest,  # noqa: F811
    submission: Submission,
    run: Run,
    client: Client,
) -> None:
    assert outcome(run).functions[0].words == f"1 more, 0 fewer, 1 equal loads; {LARGEST}"
    assert status_of(submission).words == f"Slower, counted: 1 slower, 1 identical; {LARGEST}"
    for address in (f"/submissions/{submission.number}/", f"/runs/{run.pk}/"):
        seen = " ".join(text_of(page(client, address)).split())
        assert LARGEST in seen, address
        assert "95 % confidence" not in seen, address
    cost = "tcp_v4_rcv  +20.0000 instructions, +2.0000 locked instructions, +1.0000 memory accesses"
    mail = answers.result([submission], "linux-patch-quick", trailer=False)
    comment_request.submissions.set([submission])
    comment = report(comment_request)
    for text in (mail, comment.body, run_text(run)):
        assert f"{ROUND_TRIP}, for each round trip:" in text
        assert cost in text
        assert "% confidence" not in text
    assert LARGEST in comment.description
