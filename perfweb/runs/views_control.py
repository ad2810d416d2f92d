# SPDX-License-Identifier: BSD-2-Clause
"""What can be done to a run on its pages. They ask who is there, which the page of the run does not."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from perfweb.accounts.actors import Actor, on_page
from perfweb.accounts.guards import acts
from perfweb.accounts.permissions import Action, NotAllowedError, may
from perfweb.runs import control, services
from perfweb.runs.models import Run


@require_http_methods(["GET", "HEAD", "POST"])
@acts(Action.CANCEL_OWN)
def cancel(request: HttpRequest, number: int) -> HttpResponseBase:
    """Ask whether to end a run, and end it."""
    actor = on_page(request)
    if request.method != "POST":
        return _asked(request, _cancellable(number, actor))
    try:
        control.cancel(number, actor)
    except services.RunError as error:
        return _asked(request, _run(number), str(error))
    return redirect("reports:run", number)


def _asked(request: HttpRequest, run: Run, refusal: str = "") -> HttpResponse:
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
