# SPDX-License-Identifier: BSD-2-Clause
"""Checks of patches: the state of a submission as Patchwork shows it beside each patch.

Patchwork has checks of patches only, so each patch of a series gets the check of the series; if the series is measured
patch by patch, the check of its own stage. Of several checks with one context Patchwork counts the newest.
"""

from perfweb.counted.comparison import LoadComparison
from perfweb.counted.comparison import Verdict as Effect
from perfweb.faults import services as faults
from perfweb.outbox import rest
from perfweb.outbox import services as outbox
from perfweb.outbox.models import Letter
from perfweb.outbox.secretfiles import SecretError
from perfweb.outbox.services import LaterError, NeverError
from perfweb.patchwork.client import Client, ShapeError
from perfweb.patchwork.models import Project, Series
from perfweb.stats.comparison import Verdict
from perfweb.submissions.models import SubmissionState
from perfweb.submissions.status import SubmissionStatus, status_of
from perfweb.verdicts.comparisons import TestComparison, in_words
from perfweb.verdicts.functions import in_words as function_words
from perfweb.verdicts.functions import loads_of

LONGEST_DESCRIPTION = 200
PENDING, SUCCESS, WARNING, FAIL = "pending", "success", "warning", "fail"
FOLLOW = faults.Task("check patches of a Patchwork", "it is tried again; read the messenger's log")


def follow() -> None:
    """Post the checks of all series whose result is not final yet."""
    series = Series.objects.filter(settled=False, submission__isnull=False).select_related(
        "project__testbed", "submission"
    )
    faults.for_each(FOLLOW, series, _follow)


def _follow(series: Series) -> None:
    if series.submission is None:
        return
    status = status_of(series.submission)
    for place, patch in enumerate(series.patches, start=1):
        state, words = _of_patch(series, status, place)
        content = {
            "state": state,
            "target_url": series.submission.address,
            "context": f"perfweb-{series.project.testbed.origin}",
            "description": words[:LONGEST_DESCRIPTION],
        }
        outbox.post(f"patchwork:{series.project.name}", f"check {patch}", {"patch": patch, "check": content})
    Series.objects.filter(pk=series.pk).update(settled=status.final)


def _of_patch(series: Series, status: SubmissionStatus, place: int) -> tuple[str, str]:
    """Return the state and the words of the check of the patch at a place of a series, from 1."""
    stage = f"patch-{place}"
    failed = next((one for one in status.failures if one.variant == stage), None)
    if failed:
        return FAIL, str(failed)
    pairs = [pair for pair in status.pairs if pair.b.name == stage] or status.pairs
    if status.failures or not pairs:
        return _state(series, status), status.words
    if loads := [load for pair in pairs for load in loads_of(pair.compared)]:
        return _of_loads(loads)
    tests = [test for pair in pairs for test in pair.compared]
    return _state_of(tests), in_words(tests)


def _of_loads(loads: list[LoadComparison]) -> tuple[str, str]:
    """Return the state and words of counted loads: every attributed instruction is exact, so each is a warning."""
    return WARNING if any(load.verdict is Effect.MORE for load in loads) else SUCCESS, function_words(loads)


def _state(series: Series, status: SubmissionStatus) -> str:
    """Return the state of a series: what does not apply, build or run has failed; what costs is a warning."""
    if not status.final:
        return PENDING
    if status.failures or (series.submission and series.submission.state == SubmissionState.CONFLICT):
        return FAIL
    return WARNING if status.state == "error" else _state_of(status.compared)


def _state_of(tests: list[TestComparison]) -> str:
    verdicts = {test.verdict for test in tests}
    if Verdict.FAILED in verdicts:
        return FAIL
    return WARNING if Verdict.SLOWER in verdicts else SUCCESS


def send(letter: Letter) -> str:
    """Post the check of a letter; return its number. Raises LaterError and NeverError."""
    name = letter.channel.partition(":")[2]
    project = Project.objects.filter(name=name).first()
    if project is None:
        raise NeverError(f"there is no project {name} of a Patchwork")
    try:
        return Client(project).check(letter.content["patch"], letter.content["check"])
    except SecretError as error:
        raise LaterError(str(error), rest.DENIED, everything=True) from None
    except ShapeError as error:
        raise NeverError(f"the check was posted, but {error}") from None
