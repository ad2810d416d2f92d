# SPDX-License-Identifier: BSD-2-Clause
"""The form, the list of submissions, and the page of one with its history."""

import hashlib
from collections.abc import Callable, Sequence

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from perfweb.accounts.actors import Actor, on_page
from perfweb.accounts.guards import acts
from perfweb.accounts.permissions import Action, able, may
from perfweb.parameters import number_in
from perfweb.rawdata.downloads import send, text_body
from perfweb.runs import progress, states
from perfweb.runs.models import Run
from perfweb.runs.planfile import MOST_BOOTS, PlanError, read_plan
from perfweb.submissions import services
from perfweb.submissions.difftext import marked
from perfweb.submissions.forms import SubmissionForm
from perfweb.submissions.listing import listed, to_list
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.more import more
from perfweb.submissions.plans import HostChange, host_changes
from perfweb.submissions.services import PROBLEMS, DuplicateError
from perfweb.submissions.story import Result, story
from perfweb.verdicts.doubts import doubted_runs
from perfweb.verdicts.outcome import outcome

PER_PAGE = 50
MOST_NAMED = 5
LONGEST_SHOWN = 100_000
"""Max bytes of a patch on its page; all of it can be downloaded."""


@require_safe
def submission_list(request: HttpRequest) -> HttpResponse:
    """Show waiting, measured and the newest submissions; `?before=` has older ones."""
    found = to_list()
    if (before := number_in(request, "before")) is not None:
        found = found.filter(number__lt=before)
    rows = list(found[: PER_PAGE + 1])
    waiting = Submission.objects.filter(state=SubmissionState.WAITING).select_related("author", "testbed")
    measured = Run.objects.filter(submissions__isnull=False, state__in=states.ACTIVE).prefetch_related("submissions")
    context = {
        "running": [(run, progress.latest(run.pk)) for run in measured.distinct()],
        "rows": listed(rows[:PER_PAGE]),
        "older": rows[PER_PAGE - 1].number if len(rows) > PER_PAGE else None,
        "waiting": waiting.defer("patch", "plan", "stages").order_by("number")[:PER_PAGE],
    }
    return render(request, "submissions/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.SUBMIT)
def submit(request: HttpRequest) -> HttpResponse:
    """Show the form, with the values of the address; or a preview of the plan or of the error; or submit the patch."""
    waits = not may(request.user, Action.APPROVE)
    if request.method != "POST":
        return render(request, "submissions/form.html", {"form": SubmissionForm.of_address(request), "waits": waits})
    form = SubmissionForm(request.POST, request.FILES)
    examined = existing = None
    problem = query = ""
    if form.is_valid():
        query = form.query
        try:
            if "submit" in request.POST:
                return redirect("submissions:one", services.submit(on_page(request), form.patch, form.wanted).number)
            examined = services.examine(on_page(request), form.patch, form.wanted)
        except DuplicateError as error:
            problem, existing = str(error), error.existing
        except PROBLEMS as error:
            problem = str(error)
        form = form.with_file_as_text()
    context = {
        "form": form,
        "waits": waits,
        "examined": examined,
        "problem": problem,
        "existing": existing,
        "query": query,
    }
    return render(request, "submissions/form.html", context, status=200 if examined else 422)


@require_safe
def submission(request: HttpRequest, number: int) -> HttpResponse:
    """Show a submission, the same for all users; actions are on a separate page."""
    found = _find(number)
    runs = _runs(found)
    context = {
        "submission": found,
        "results": _results(runs),
        "working": any(not run.is_over for run in runs),
        "more": more(found, runs[0] if runs else None),
        "approvers": _approvers() if found.state == SubmissionState.WAITING else [],
        "steps": story(found, runs),
        **_shown(found),
    }
    return render(request, "submissions/one.html", context)


def _results(runs: Sequence[Run]) -> list[Result]:
    return [
        Result(run, pairs, {}, outcome(run)) if run.is_over else Result(run, pairs, progress.latest(run.pk))
        for run, pairs in doubted_runs(runs)
    ]


def _approvers() -> list[str]:
    """The first maintainers by name."""
    return list(able(Action.APPROVE).values_list("username", flat=True)[:MOST_NAMED])


@require_safe
def patch(request: HttpRequest, number: int) -> HttpResponseBase:
    """Send a patch byte for byte, as plain text."""
    found = _find(number)
    content = bytes(found.patch)
    return send(
        request, text_body(f"submission-{number}.mbox", content, hashlib.sha256(content).hexdigest(), found.created)
    )


@require_safe
@acts(Action.SUBMIT)
def actions(request: HttpRequest, number: int) -> HttpResponse:
    """Show the actions that the user can take on a submission."""
    return _actions(request, _find(number))


@require_POST
@acts(Action.APPROVE)
def approve(request: HttpRequest, number: int) -> HttpResponse:
    """Approve a patch."""
    return _act(request, number, lambda actor: services.approve(actor, number, request.POST.get("reason", "")))


@require_POST
@acts(Action.APPROVE)
def refuse(request: HttpRequest, number: int) -> HttpResponse:
    """Refuse a patch, with a reason."""
    return _act(request, number, lambda actor: services.refuse(actor, number, request.POST.get("reason", "")))


@require_POST
@acts(Action.CANCEL_OWN)
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    """End a submission."""
    return _act(request, number, lambda actor: services.cancel(actor, number))


@require_POST
@acts(Action.SUBMIT)
def rerun(request: HttpRequest, number: int) -> HttpResponse:
    """Measure again, with the requested number of boots."""
    boots = request.POST.get("boots", "")
    if boots and not (boots.isascii() and boots.isdigit() and len(boots) <= 4 and 1 <= int(boots) <= MOST_BOOTS):
        return _actions(request, _find(number), f"“{boots[:20]}” is no number of boots: a run has 1 to {MOST_BOOTS}.")
    return _act(request, number, lambda actor: services.rerun(actor, number, int(boots) if boots else None))


def _act(request: HttpRequest, number: int, act: Callable[[Actor], object]) -> HttpResponse:
    found = _find(number)
    try:
        act(on_page(request))
    except PROBLEMS as error:
        return _actions(request, found, str(error))
    return redirect("submissions:one", number)


def _find(number: int) -> Submission:
    try:
        return Submission.objects.select_related("author", "testbed", "mirror").get(number=number)
    except Submission.DoesNotExist:
        raise Http404(f"There is no submission {number}. The list of submissions shows those that there are.") from None


def _runs(found: Submission) -> list[Run]:
    return list(found.runs.select_related("plan", "testbed").prefetch_related("variants").order_by("-number"))


def _shown(found: Submission) -> dict[str, object]:
    """Return the patch, or the beginning of a very long one, and the hunks that do not apply."""
    text = bytes(found.patch)
    reason, _, hunks = found.reason.partition("\n\n")
    return {
        "text": marked(text[:LONGEST_SHOWN].decode("utf-8", "replace")),
        "cut": len(text) > LONGEST_SHOWN,
        "reason": reason,
        "hunks": marked(hunks),
    }


def _host_changes(found: Submission) -> list[HostChange]:
    """Return the changes of hosts by the plan; empty for an invalid plan, which cannot be approved either."""
    try:
        return host_changes(read_plan(found.plan))
    except PlanError:
        return []


def _actions(request: HttpRequest, found: Submission, problem: str = "") -> HttpResponse:
    waiting, approved = (found.state == state for state in (SubmissionState.WAITING, SubmissionState.APPROVED))
    working = any(not run.is_over for run in found.runs.all())
    cancelling = Action.CANCEL_OWN if request.user == found.author else Action.CANCEL_ANY
    may_rerun = approved and not working
    context = {
        "submission": found,
        "problem": problem,
        **_shown(found),
        "more": more(found, found.newest_run) if may_rerun else None,
        "most_boots": MOST_BOOTS,
        "may_approve": waiting and may(request.user, Action.APPROVE),
        "host_changes": _host_changes(found) if waiting else [],
        "may_cancel": (waiting or working) and may(request.user, cancelling),
        "may_rerun": may_rerun,
    }
    return render(request, "submissions/actions.html", context, status=409 if problem else 200)
