# SPDX-License-Identifier: BSD-2-Clause
"""Actions of users on runs and testbeds."""

from django.db import transaction

from perfweb.accounts import audit
from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Means
from perfweb.accounts.permissions import Action
from perfweb.lab import outages
from perfweb.lab.models import Outage, OutageKind
from perfweb.runs import services
from perfweb.runs.models import Run


def cancelling(run: Run, actor: Actor) -> Action:
    """The action of ending this run."""
    own = actor.means != Means.COMMAND and run.requested_by == actor.name
    return Action.CANCEL_OWN if own else Action.CANCEL_ANY


def cancel(number: int, actor: Actor) -> Run:
    """Ends a run for a user. Raises RunError, NotAllowedError or NotNowError."""
    with audit.action(actor, cancelling(services.get(number), actor), f"run {number}"):
        return services.cancel(number, actor.name)


def measure_again(number: int, actor: Actor) -> Run:
    """Queues a run of the same plan on the same testbed, in another random order, for a user.

    Raises RunError, also for a plan that needs a patch, NotAllowedError or NotNowError.
    """
    with audit.action(actor, Action.MEASURE_AGAIN, f"run {number}") as entry:
        measured = services.get(number)
        run = services.submit(measured.plan.text, measured.testbed.name, actor.name)
        entry.detail = f"run {run.number}"
        return run


def maintain(testbed_name: str, why: str, actor: Actor) -> Outage:
    """Takes a testbed out of service for a user; a current run continues to its end.

    Raises RunError, OutageError, NotAllowedError or NotNowError.
    """
    with audit.action(actor, Action.MAINTAIN_TESTBED, f"testbed {testbed_name}", f"out of service: {why}"):
        return outages.begin(services.find_testbed(testbed_name), OutageKind.MAINTENANCE, why, actor.name)


def put_back(testbed_name: str, actor: Actor) -> list[Outage]:
    """Ends maintenance and quarantine of a testbed for a user, and notifies the workers of the queued runs.

    Raises as `maintain` does.
    """
    with audit.action(actor, Action.MAINTAIN_TESTBED, f"testbed {testbed_name}", "back in service"):
        ended = outages.end(services.find_testbed(testbed_name), actor.name)
        transaction.on_commit(services.dispatch)
        return ended
