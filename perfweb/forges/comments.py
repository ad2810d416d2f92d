# SPDX-License-Identifier: BSD-2-Clause
"""The service's comment on a pull request, and the status of its commit: the verdict first, details folded below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from perfweb.forges.markdown import block, code, folded, table
from perfweb.forges.models import CommentRequest
from perfweb.runs.models import Run
from perfweb.stats.comparison import Verdict
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.status import SubmissionStatus, status_of
from perfweb.verdicts.comparisons import TestComparison, in_words
from perfweb.verdicts.environment import host_table
from perfweb.verdicts.functions import largest_in_words, lines
from perfweb.verdicts.outcome import Outcome
from perfweb.verdicts.run_verdicts import Pair
from perfweb.verdicts.text import run_text
from perfweb.verdicts.wording import CHANGED, DOUBT, cell_words, difference_words, seen_at_best

MOST_ROWS = 5
LONGEST_DESCRIPTION = 140
LONGEST = 60_000
NOTABLE = {*CHANGED, Verdict.FAILED}
"""Verdicts whose tests the comment lists."""


@dataclass(frozen=True)
class Report:
    """A comment, a status with its description and address, and whether they are final."""

    body: str
    state: str
    description: str
    address: str
    final: bool


def report(request: CommentRequest) -> Report:
    """Return the current response to a request."""
    known = [(one, status_of(one)) for one in request.submissions.order_by("number")]
    if not known:
        return Report(f"{request.answer}\n\n{_mark(request)}", "", "", "", final=True)
    statuses = [one for _, one in known]
    verdict = _verdict(statuses)
    parts = [f"**{verdict}**", request.answer, *_parts(request, known)]
    body = "\n\n".join(filter(None, parts))
    if request.outdated:
        newer = f"Outdated: this was about commit `{request.head[:12]}`; there is a newer one, or a newer request."
        body = f"*{newer}*\n\n{folded(verdict, body)}"
    final = all(one.final for one in statuses)
    states = {one.state for one in statuses}
    state = next((one for one in ("error", "failure") if one in states), "success") if final else "pending"
    return Report(f"{body}\n\n{_mark(request)}", state, _short(verdict), known[0][0].address, final)


def mark(key: object) -> str:
    """A mark that finds the service's comment after a crash; browsers do not show it."""
    return f"<!-- perfweb {key} -->"


def _verdict(statuses: Sequence[SubmissionStatus]) -> str:
    """Return one line about all submissions: the common verdict, else the next step."""
    measured = [test for one in statuses for test in one.compared]
    open_ones = [one.words for one in statuses if not one.final]
    if open_ones:
        return open_ones[0] + (
            f" ({len(statuses) - len(open_ones)} of {len(statuses)} done)" if len(statuses) > 1 else ""
        )
    others = [one.words for one in statuses if not one.pairs or one.failures]
    function = largest_in_words([load for one in statuses for load in one.outcome.loads])
    return ". ".join(filter(None, [in_words(measured) if measured else "", function, *dict.fromkeys(others)]))


def _parts(request: CommentRequest, known: Sequence[tuple[Submission, SubmissionStatus]]) -> list[str]:
    several = len(known) > 1
    parts = [_changes(known, several=several), _links(request, known)]
    for submission, status in known:
        name = _knobs(submission) if several else ""
        parts += _outcome(status.outcome)
        if status.pairs and status.run:
            parts += _details(status.run, status.pairs, name)
        elif submission.state in {SubmissionState.CONFLICT, SubmissionState.REFUSED} and submission.reason:
            parts.append(folded("Why", block(submission.reason)))
        elif status.final and status.outcome.reason:
            parts.append(folded("Why", block(status.outcome.reason)))
    return _within(parts)


def _outcome(found: Outcome) -> list[str]:
    """Return the variants that fail, the functions that differ, and the new warnings of the compiler."""
    parts = [folded(f"{one.variant} {one.kind}", block(f"{one.line}\n{one.details}")) for one in found.failures]
    for pair in found.functions:
        text = "\n".join(lines(pair.loads))
        parts.append(folded(f"{pair.b} against {pair.a}, by function: {pair.words}", block(text)) if text else "")
    if found.warnings:
        parts.append(folded("New warnings of the compiler", block("\n".join(map(str, found.warnings)))))
    return parts


def _changes(known: Sequence[tuple[Submission, SubmissionStatus]], *, several: bool) -> str:
    """Return a table of the largest changes or, without changes, the detectable change."""
    compared = [
        (submission, pair, one) for submission, status in known for pair in status.pairs for one in pair.compared
    ]
    changed = [(submission, pair, one) for submission, pair, one in compared if one.verdict in NOTABLE]
    if not compared:
        return ""
    if not changed:
        seen = seen_at_best([one.result for _, _, one in compared])
        return seen or "There are too few boots to compute the smallest detectable change."
    changed.sort(key=lambda item: (item[2].verdict is not Verdict.FAILED, -_size(item[2])))
    rows = [
        [
            code(one.test), *([code(_knobs(submission))] if several else []), code(pair.b.name),
            difference_words(one.result), cell_words(one),
        ]
        for submission, pair, one in changed[:MOST_ROWS]
    ]  # fmt: skip
    more = len(changed) - len(rows)
    head = ["test", *(["knobs"] if several else []), "what", "change, with its interval", "verdict"]
    notes = [
        f"{more} more changed, see below." if more > 0 else "",
        DOUBT if any(one.lean is not None for _, _, one in changed[:MOST_ROWS]) else "",
    ]
    return "\n\n".join([table(head, rows), *filter(None, notes)])


def _size(one: TestComparison) -> float:
    return abs(one.change.percent) if one.change else 0.0


def _links(request: CommentRequest, known: Sequence[tuple[Submission, SubmissionStatus]]) -> str:
    pages = ", ".join(
        f"[submission {submission.number}]({submission.address})"
        + (f", [run {status.run.number}]({settings.SITE_URL}/runs/{status.run.number}/)" if status.run else "")
        for submission, status in known
    )
    return f"Commit `{request.head[:12]}`, {pages}."


def _details(run: Run, pairs: Sequence[Pair], name: str) -> list[str]:
    site = settings.SITE_URL
    ministats = "\n".join(f"{one.test}\n{one.ministat}" for pair in pairs for one in pair.compared if one.has_ministat)
    hosts, facts = host_table(run)
    environment = table(["", *map(code, hosts)], [[code(row.name), *map(code, row.values)] for row in facts])
    again = (
        f"[All samples and texts]({site}/runs/{run.number}/raw.tar), [the plan]({site}/runs/{run.number}/plan.yaml). "
        "With a checkout of this service:\n\n"
        + block(
            f"curl -O {site}/runs/{run.number}/raw.tar\n"
            "manage.py replay raw.tar                        # computes every verdict again\n"
            "manage.py replay raw.tar --run --testbed NAME   # and measures it on your testbed"
        )
    )
    return [
        folded("All tests", block(run_text(run)), name),
        folded("ministat", block(ministats), name) if ministats else "",
        folded("Environment", environment, name) if hosts else "",
        folded("How to reproduce", again, name),
    ]


def _within(parts: Sequence[str]) -> list[str]:
    """Return the parts that fit into a comment, the first ones first."""
    kept, left = list[str](), LONGEST
    for part in filter(None, parts):
        if len(part) <= left:
            kept.append(part)
            left -= len(part)
    return kept


def _knobs(submission: Submission) -> str:
    run = submission.newest_run
    variant = run.variants.first() if run else None
    return " ".join(f"{name}={value}" for name, value in sorted(variant.tunables.items())) if variant else ""


def _mark(request: CommentRequest) -> str:
    return mark(request.pk)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_DESCRIPTION else text[: LONGEST_DESCRIPTION - 1] + "…"
