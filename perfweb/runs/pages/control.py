# SPDX-License-Identifier: BSD-2-Clause
"""Actions on a run or a testbed. These pages depend on the user, unlike the page of the run."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from perfweb.accounts.actors import Actor, on_page
from perfweb.accounts.guards import acts
from perfweb.accounts.permissions import Action, NotAllowedError, may
from perfweb.lab.outages import OutageError
from perfweb.runs import control, services
from perfweb.runs.models import Run
from perfweb.runs.planfile import PlanError


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.CANCEL_OWN)
def cancel(request: HttpRequest, number: int) -> HttpResponseBase:
    """Confirm and end a run."""
    actor = on_page(request)
    if request.method != "POST":
        return _confirm(request, _cancellable(number, actor))
    try:
        control.cancel(number, actor)
    except services.RunError as error:
        return _confirm(request, _run(number), str(error))
    return redirect("reports:run", number)


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.MEASURE_AGAIN)
def again(request: HttpRequest, number: int) -> HttpResponseBase:
    """Confirm and queue another run of the same plan on the same testbed."""
    run, refusal = _run(number), ""
    if request.method == "POST":
        try:
            return redirect("reports:run", control.measure_again(number, on_page(request)).number)
        except (services.RunError, PlanError) as error:
            refusal = str(error)
    context = {"run": run, "refusal": refusal, "submission": run.submissions.first()}
    return render(request, "runs/again.html", context, status=409 if refusal else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.MAINTAIN_TESTBED)
def service(request: HttpRequest, name: str) -> HttpResponseBase:
    """Confirm and take a testbed out of service or put it back."""
    try:
        testbed = services.find_testbed(name)
    except services.RunError as error:
        raise Http404(str(error)) from None
    refusal = ""
    if request.method == "POST":
        try:
            if "back" in request.POST:
                control.put_back(name, on_page(request))
            else:
                control.maintain(name, request.POST.get("why", ""), on_page(request))
        except OutageError as error:
            refusal = str(error)
        else:
            return redirect("reports:testbed", name)
    context = {"testbed": testbed, "outages": testbed.outages.all()[:20], "refusal": refusal}
    context["out"] = testbed.outages.filter(ended__isnull=True).exists()
    return render(request, "runs/service.html", context, status=409 if refusal else 200)


def _confirm(request: HttpRequest, run: Run, refusal: str = "") -> HttpResponse:
    context = {"run": run, "refusal": refusal}
    return render(request, "runs/cancel.html", context, status=409 if refusal else 200)


def _cancellable(number: int, actor: Actor) -> Run:
    run = _run(number)
    if not may(actor, action := control.cancelling(run, actor)):
        raise NotAllowedError(action)
    return run


def _run(number: int) -> Run:
    run = Run.objects.select_related("plan", "testbed").filter(pk=number).first()
    if run is None:
        raise Http404(f"There is no run {number}.")
    return run
