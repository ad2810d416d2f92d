# SPDX-License-Identifier: BSD-2-Clause
"""The pages of tracked branches and of alerts; the same for all users except the two pages with actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.db.models import Count, DurationField, ExpressionWrapper, F, Max, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_http_methods, require_safe

from perfweb.accounts.actors import on_page
from perfweb.accounts.guards import acts
from perfweb.accounts.permissions import Action
from perfweb.figures.graphs import respond
from perfweb.parameters import number_in, text_in
from perfweb.runs.models import Run, RunState
from perfweb.stats.ratio import Change
from perfweb.tracking import periods, services, states
from perfweb.tracking.alerts import ledger, notifications
from perfweb.tracking.alerts.confirming import change_of, compared, in_words
from perfweb.tracking.alerts.explaining import explain
from perfweb.tracking.drawing import graphs, graphs_near, newest_shifts
from perfweb.tracking.measuring import before_name
from perfweb.tracking.models import Alert, AlertState, Check, Movement, TrackedBranch, TrackedCommit
from perfweb.tracking.series import read

NEWEST_COMMITS = 50
PER_PAGE = 50
VERSIONS = 20


@dataclass(frozen=True)
class CommitRow:
    """A commit in the list of a branch, with its runs and the alerts that name it as the culprit."""

    commit: TrackedCommit
    run: Run | None
    state: str
    alerts: list[Alert]


@require_safe
def branch_list(request: HttpRequest) -> HttpResponse:
    """Show all tracked branches with their open alerts, the newest alerts, and the track record of past ones."""
    measured = Count("commits", filter=Q(commits__runs__state=RunState.DONE), distinct=True)
    branches = TrackedBranch.objects.select_related("mirror", "testbed").annotate(
        listed=Count("commits", filter=Q(commits__position__isnull=False), distinct=True), measured=measured,
        newest=Max("commits__runs__ended"),
    )  # fmt: skip
    open_alerts = dict(
        Alert.objects.filter(state__in=states.OPEN).values_list("branch").annotate(n=Count("pk")).order_by()
    )
    context = {
        "branches": [(branch, open_alerts.get(branch.pk, 0)) for branch in branches],
        "alerts": Alert.objects.to_show()[:10],
        "ledger": ledger.counts(Alert.objects.real_unless_none()),
    }
    return render(request, "tracking/list.html", context)


@require_safe
def branch(request: HttpRequest, name: str) -> HttpResponse:
    """Show the series of a branch, its alerts, its newest commits, and the versions of its analysis."""
    found = _branch(name)
    alerts = list(Alert.objects.to_show().filter(branch=found))
    commits = list(found.commits.filter(position__isnull=False).order_by("-position"))
    unrefuted = [alert for alert in alerts if alert.state != AlertState.REFUTED]
    drawn = graphs(read(found).series, commits, unrefuted, newest_shifts(found))
    context = {
        "branch": found,
        "alerts": alerts[:PER_PAGE],
        "rows": _commit_rows(found, commits[:NEWEST_COMMITS], alerts),
        "listed": len(commits),
        "graphs": drawn,
        "versions": found.analyses.annotate(shifted=Count("shifts"))[:VERSIONS],
        "time": _machine_time(found),
    }
    return respond(request, "tracking/branch.html", context, drawn)


@require_safe
def period(request: HttpRequest, name: str) -> HttpResponse:
    """Summarise the changes between two commits, `?from=` and `?until=`, for example two releases."""
    found = _branch(name)
    since, until = text_in(request, "from").strip(), text_in(request, "until").strip()
    context: dict[str, object] = {"branch": found, "since": since, "until": until}
    try:
        first = periods.find(found, since, "position")
        last = periods.find(found, until, "-position")
        context["period"] = periods.between(found, first, last)
    except periods.PeriodError as error:
        context["problem"] = str(error)
    wrong = "problem" in context and bool(since or until)  # without parameters there may be no period yet
    return render(request, "tracking/period.html", context, status=400 if wrong else 200)


@require_safe
def alert_list(request: HttpRequest) -> HttpResponse:
    """Show alerts, the newest first; `?before=` has older ones."""
    found = Alert.objects.to_show()
    if (before := number_in(request, "before")) is not None:
        found = found.filter(number__lt=before)
    rows = list(found[: PER_PAGE + 1])
    older = rows[PER_PAGE - 1].number if len(rows) > PER_PAGE else None
    return render(request, "tracking/alerts.html", {"alerts": rows[:PER_PAGE], "older": older})


@require_safe
def alert(request: HttpRequest, number: int) -> HttpResponse:
    """Show the movements of an alert with the commits near it, their confirmation and bisection, and its comments."""
    found = alert_of_page(number)
    movements = list(found.movements.all())
    checks = list(found.checks.select_related("commit", "run"))
    drawn = graphs_near(found, read(found.branch).series)
    context = {
        "alert": found,
        "graphs": drawn,
        "commit_page": notifications.commit_page(found.branch.mirror, found.culprit),
        "movements": [(movement, in_words(movement)) for movement in movements],
        "checks": [(check, _changes_of(check, movements)) for check in checks],
        "between": found.branch.commits.filter(
            position__gt=found.since.position or 0, position__lte=found.until.position or 0
        ),
        "steps": found.steps.all(),
        "explanation": explain(found, checks, movements),
        "issue": notifications.issue_of(found),
    }
    return respond(request, "tracking/alert.html", context, drawn)


def _changes_of(check: Check, movements: Sequence[Movement]) -> list[tuple[str, str, Change | None]]:
    """Return the pair of variants and the change of each movement, as far as a run is done."""
    if check.run.state != RunState.DONE:
        return []
    return [
        (before_name(movement.variant), movement.variant, change_of(comparison))
        for movement, comparison in zip(movements, compared([check.run], movements), strict=True)
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.JUDGE_ALERT)
def update_alert(request: HttpRequest, number: int) -> HttpResponse:
    """Show the form for another state, an owner or a comment of an alert, and handle it."""
    found = alert_of_page(number)
    problem = ""
    if request.method == "POST":
        try:
            services.update_alert(on_page(request), number, _update(request))
        except services.PROBLEMS as error:
            problem = str(error)
        else:
            return redirect("tracking:alert", number)
    allowed = states.ALLOWED[AlertState(found.state)] & states.BY_PEOPLE
    choices = [state for state in AlertState if state in allowed]
    context = {"alert": found, "states": choices, "problem": problem, "posted": request.POST}
    return render(request, "tracking/update.html", context, status=409 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.TRACK)
def pause(request: HttpRequest, name: str) -> HttpResponse:
    """Confirm and pause or resume the measurements of a branch."""
    found = _branch(name)
    if request.method == "POST":
        services.pause(on_page(request), name, active=not found.active)
        return redirect("tracking:branch", name)
    return render(request, "tracking/pause.html", {"branch": found})


def _update(request: HttpRequest) -> services.AlertUpdate:
    due = request.POST.get("due", "")
    try:
        day: date | None = parse_date(due) if due else None
    except ValueError:
        day = None
    if due and day is None:
        raise services.TrackingError(f"“{due[:20]}” is no date: write 2026-11-23.")
    return services.AlertUpdate(
        request.POST.get("state", ""), request.POST.get("owner", "").strip(), day, request.POST.get("text", "")
    )


def _branch(name: str) -> TrackedBranch:
    try:
        return services.find(name)
    except services.TrackingError as error:
        raise Http404(str(error)) from None


def alert_of_page(number: int) -> Alert:
    """Return an alert with everything for a row of a list. Raises Http404."""
    found = Alert.objects.to_show().filter(number=number).first()
    if found is None:
        raise Http404(f"There is no alert {number}. The list of alerts shows those that there are.")
    return found


def _commit_rows(branch: TrackedBranch, commits: Iterable[TrackedCommit], alerts: Iterable[Alert]) -> list[CommitRow]:
    chosen = branch.commits.filter(pk__in=[commit.pk for commit in commits]).order_by("-position")
    shown = list(chosen.prefetch_related("runs", "checks__run"))
    blamed: dict[int, list[Alert]] = {}
    for one in alerts:
        if one.state != AlertState.REFUTED and one.culprit_id is not None:
            blamed.setdefault(one.culprit_id, []).append(one)
    rows = []
    for commit in shown:
        runs = [*commit.runs.all(), *(check.run for check in commit.checks.all())]
        run = max(runs, key=lambda run: run.pk, default=None)
        rows.append(CommitRow(commit, run, _state(commit, run), blamed.get(commit.pk, [])))
    return rows


def _state(commit: TrackedCommit, run: Run | None) -> str:
    if run is not None:
        return run.get_state_display()
    return commit.problem or ("waits" if commit.wanted else "left out")


def _machine_time(branch: TrackedBranch) -> dict[str, timedelta | None]:
    """Return the testbed time of an alert, by purpose."""
    took = Sum(ExpressionWrapper(F("ended") - F("started"), output_field=DurationField()))
    of_commits = Run.objects.filter(pk__in=branch.commits.filter(runs__isnull=False).values("runs"))
    of_checks = Run.objects.filter(check_of__alert__branch=branch)
    return {
        "commits": of_commits.aggregate(took=took)["took"],
        "checks": of_checks.aggregate(took=took)["took"],
    }
