# SPDX-License-Identifier: BSD-2-Clause
"""Texts of mail responses: plain text in 72 columns. Only quoted lines of a patch can be longer."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from django.conf import settings
from django.urls import reverse

from perfweb.mail.messages import PREFIX
from perfweb.plaintext import plain
from perfweb.runs.models import Run, RunState
from perfweb.stats.comparison import Verdict
from perfweb.stats.ministat import ministat
from perfweb.stats.student import DEFAULT_CONFIDENCE
from perfweb.submissions.commands import help_text
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.status import SubmissionStatus, status_of
from perfweb.verdicts.comparisons import TestComparison, in_words
from perfweb.verdicts.functions import lines, loads_of
from perfweb.verdicts.numbers import THIN_SPACE, duration
from perfweb.verdicts.run_verdicts import Pair
from perfweb.verdicts.wording import DOUBT, cell_words, difference_words, seen_at_best

WIDTH = 72
MOST_PLOTS = 3
PROVEN_NOT_SLOWER = {Verdict.FASTER, Verdict.EQUIVALENT, Verdict.IDENTICAL}


def problem(text: str) -> str:
    """The reason why nothing is measured, and what to do."""
    return _letter(
        f"This was not measured. {text}",
        f"To try again send a new version of the whole series ([PATCH v2]) with a line “{PREFIX} …” in it.",
    )


def misunderstood(text: str) -> str:
    """The response to an unknown request in a reply."""
    return _letter(text, help_text(PREFIX), as_it_is=[1])


def no_series() -> str:
    """The response to a request without a patch."""
    return _letter(
        "This mail is no patch, and it is no reply to a series that you sent here. Send the patches with the request "
        "in the cover letter or in a patch, or reply to your series from the address that sent it. Requests:",
        help_text(PREFIX),
        as_it_is=[1],
    )


def helped() -> str:
    """The list of requests."""
    return _letter("Put one line with a request into the cover letter or a patch:", help_text(PREFIX), as_it_is=[1])


def missing(numbers: Sequence[int], total: int) -> str:
    """The report of missing patches."""
    which = ", ".join(map(str, numbers))
    return _letter(
        f"Patch {which} of this series of {total} has not arrived. The series is measured when it arrives. "
        "Send it again as a reply in this thread, or send the whole series as a new version. Patches are connected "
        "by In-Reply-To and References, which git send-email writes unless --no-thread is set."
    )


def received(submissions: Sequence[Submission], problems: Sequence[str], known: bool) -> str:
    """The confirmation of a request. `known`: the sender is proven to have an account here."""
    lines = [f"{submission.address}\n  {_waits(submission)}" for submission in submissions]
    unknown = (
        "" if known else "The sender is not verified: no account has this address, or no signature (DKIM) proves it."
    )
    first = "This will be measured. The result will be sent to this thread."
    return _letter(first, "\n".join(lines), *problems, unknown, as_it_is=[1])


def conflict(submission: Submission) -> str:
    """The report of a hunk that does not apply."""
    reason, *hunks = submission.reason.split("\n\n", 1)
    quoted = textwrap.indent(plain("\n".join(hunks)), "  ", lambda _: True)
    again = (
        "Make the series again on the current base, best with git format-patch --base, and send it as a new version."
    )
    return _letter(f"This was not measured, for it does not apply. {reason}", quoted, again, as_it_is=[1])


def status(submissions: Sequence[Submission]) -> str:
    """The progress of a series."""
    if not submissions:
        return _letter("Nothing of this series is being measured.")
    lines = [f"{submission.address}\n  {_stands(submission)}" for submission in submissions]
    return _letter("This series:", "\n".join(lines), as_it_is=[1])


def run_again() -> str:
    """The response to a reply that requests a run."""
    return _letter("To have something else measured send the series as a new version, with the new line in it.")


def superseded(subject: str) -> str:
    """The report of a newer version."""
    return _letter(f"This is not measured any more: “{subject}” has come.")


def result(submissions: Sequence[Submission], request: str, *, trailer: bool) -> str:
    """The result: the verdict in words, a table and plots for each comparison, and how to repeat it."""
    known = [(submission, status_of(submission)) for submission in submissions]
    measured = [(one, status.run, pair) for one, status in known if status.run for pair in status.pairs]
    blocks = [block for one, status in known for block in _outcome(one, status)]
    whole = not any(status.outcome.failures for _, status in known) and all(map(is_measured, submissions))
    blocks += [block for one, run, pair in measured for block in _blocks(one, run, pair)]
    blocks += [(_end(one, status), False) for one, status in known if not is_measured(one)]
    if measured:
        blocks.append(("To measure it on other hosts send the series to a perfweb there, with this line:", False))
        blocks.append((f"  {PREFIX} {request}", True))
    if trailer:
        verdicts = {test.verdict for _, _, pair in measured for test in pair.compared}
        blocks.append(_trailer(submissions[0].address, verdicts, whole=whole))
    return _letter(*(text for text, _ in blocks), as_it_is=[place for place, (_, code) in enumerate(blocks) if code])


def _outcome(submission: Submission, status: SubmissionStatus) -> list[tuple[str, bool]]:
    """Return what a patch fails to do, each failure with its decisive lines, and the warnings that it causes, as
    paragraphs like those of _blocks().
    """
    found = status.outcome
    failing = [line for failure in found.failures for line in (str(failure), *failure.details.split("\n")) if line]
    return [
        *_quoted(f"{plain(submission.title)} fails:" if status.failures else "Its base fails, too:", failing),
        *_quoted("New warnings of the compiler:", [line for one in found.warnings for line in one.lines]),
    ]


def _quoted(head: str, lines: Sequence[str]) -> list[tuple[str, bool]]:
    """Return lines as they are below a heading; nothing without lines."""
    return [(head, False), (plain(textwrap.indent("\n".join(lines), "  ")), True)] if lines else []


def _blocks(submission: Submission, run: Run, pair: Pair) -> list[tuple[str, bool]]:
    """Yield the paragraphs about a comparison, each with whether its lines must not be wrapped."""
    tests = pair.compared
    plotted = sorted(_to_plot(tests), key=_size, reverse=True)[:MOST_PLOTS]
    knobs = ", ".join(f"{name}={value}" for name, value in pair.b.tunables.items())
    boots = max((max(test.result.boots) for test in tests), default=0)
    seen = f"{boots} boots of each on {run.testbed.label}, base {submission.revision}"
    verdict = (
        f"{in_words(tests)} ({pair.b.name} against {pair.a.name}). {seen_at_best([test.result for test in tests])}"
    )
    loads = loads_of(tests)
    terms = "counted by function" if loads else f"intervals at {DEFAULT_CONFIDENCE:g} % confidence"
    archive = f"{settings.SITE_URL}{reverse('reports:run-archive', args=[run.pk])}"
    return [
        (verdict.strip(), False),
        (_table(tests), True),
        *_quoted("Functions that differ:" if loads else "", lines(loads)),
        *((f"{test.test}: {test.words}.", False) for test in tests if test.result.lack),
        (DOUBT if any(test.lean is not None for test in tests) else "", False),
        (f"{seen}{', with ' if knobs else ''}{knobs}; {terms}.", False),
        *((_plot(test), True) for test in plotted),
        (f"{settings.SITE_URL}{reverse('reports:run', args=[run.pk])}\n{submission.address}", True),
        ("Every sample, output and setting, and the patch; the verdict is computed from them by", False),
        (f"  curl -O {archive}\n  manage.py replay raw.tar", True),
    ]


def _table(tests: Sequence[TestComparison]) -> str:
    """Test, change with its interval, verdict; on two lines each if one would be too long."""
    if not tests:
        return "Nothing was measured."
    rows = [(test.test, difference_words(test.result), cell_words(test)) for test in tests]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    if sum(widths) + 4 <= WIDTH:
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(map(str.rstrip, lines))
    return "\n".join(f"{name}\n    {change.ljust(widths[1])}  {verdict}" for name, change, verdict in rows)


def _to_plot(tests: Sequence[TestComparison]) -> list[TestComparison]:
    """Return the tests to plot: the changed ones; without any, the first test."""
    plotted = [test for test in tests if test.has_ministat]
    return [test for test in plotted if test.verdict in {Verdict.FASTER, Verdict.SLOWER}] or plotted[:1]


def _size(test: TestComparison) -> float:
    return abs(test.result.effect.interval.percent) if test.result.effect else 0.0


def _plot(test: TestComparison) -> str:
    """ministat's plot without its table, which is wider than a mail."""
    sets = dict(zip(test.files, (test.a_samples, test.b_samples), strict=True))
    try:
        lines = ministat(sets, confidence=test.result.confidence, width=WIDTH - 2).splitlines()
    except ValueError as error:
        return str(error)
    kept = [line.expandtabs(4) for line in lines if len(line) <= WIDTH]
    return "\n".join([f"{test.test} in {test.unit}", *kept])


def _trailer(link: str, verdicts: set[Verdict], *, whole: bool) -> tuple[str, bool]:
    """The requested Perf-tested-by line, if no test is slower or undecided."""
    if whole and verdicts and verdicts <= PROVEN_NOT_SLOWER:
        return f"Perf-tested-by: perfweb <{settings.MAIL_ADDRESS}> # {link}", True
    return "There is no line Perf-tested-by: it is for patches with which every test is faster or equivalent.", False


def is_measured(submission: Submission) -> bool:
    run = submission.newest_run
    return run is not None and run.state == RunState.DONE


def _end(submission: Submission, status: SubmissionStatus) -> str:
    """The reason why a submission has no result."""
    run = submission.newest_run
    if submission.state == SubmissionState.APPROVED and run is not None:
        ending = f"Run {run.pk} was {run.get_state_display()}: {status.outcome.reason}"
    else:
        ending = f"It was {submission.get_state_display()}: {submission.reason}"
    return f"Not measured. {plain(ending).rstrip(': ')} {submission.address}"


def _stands(submission: Submission) -> str:
    run = submission.newest_run
    of_run = f", run {run.pk} is {run.get_state_display()}" if run else ""
    return f"{submission.get_state_display()}{of_run}"


def _waits(submission: Submission) -> str:
    if submission.state == SubmissionState.WAITING:
        return f"waits until a maintainer has approved it; takes about {duration(submission.seconds)}"
    return f"{submission.get_state_display()}; takes about {duration(submission.seconds)}"


def _letter(*paragraphs: str, as_it_is: Sequence[int] = ()) -> str:
    """Format paragraphs in 72 columns, with the service's signature."""
    parts = [
        text if place in as_it_is else textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
        for place, text in enumerate(paragraphs)
        if text
    ]
    signed = f"-- \nperfweb measures patches: {settings.SITE_URL}"
    text = "\n\n".join([*parts, signed]).replace(THIN_SPACE, " ") + "\n"
    # A program that returns an answer without quote marks must not make a request with it.
    return textwrap.indent(text, "  ", lambda line: line.lower().startswith(PREFIX))
