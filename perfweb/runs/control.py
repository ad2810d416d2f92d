# SPDX-License-Identifier: BSD-2-Clause
"""What people may do to runs, each to their own and some to all, and to testbeds."""

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
    """What it is for somebody to end this run."""
    own = actor.means != Means.COMMAND and run.requested_by == actor.name
    return Action.CANCEL_OWN if own else Action.CANCEL_ANY


def cancel(number: int, actor: Actor) -> Run:
    """Ends a run for somebody. Raises RunError, NotAllowedError or NotNowError."""
    with audit.action(actor, cancelling(services.get(number), actor), f"run {number}"):
        return services.cancel(number, actor.name)


def maintain(testbed_name: str, why: str, actor: Actor) -> Outage:
    """Takes a testbed out of service for somebody; the run that has it goes on to its end.

    Raises RunError, OutageError, NotAllowedError or NotNowError.
    """
    with audit.action(actor, Action.MAINTAIN_TESTBED, f"testbed {testbed_name}", f"out of service: {why}"):
        return outages.begin(services.find_testbed(testbed_name), OutageKind.MAINTENANCE, why, actor.name)


def put_back(testbed_name: str, actor: Actor) -> list[Outage]:
    """Ends maintenance and quarantine of a testbed for somebody, and tells the workers of the runs that wait for it.

    Raises as `maintain` does.
    """
    with audit.action(actor, Action.MAINTAIN_TESTBED, f"testbed {testbed_name}", "back in service"):
        ended = outages.end(services.find_testbed(testbed_name), actor.name)
        transaction.on_commit(services.dispatch)
        return ended
