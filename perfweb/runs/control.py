# SPDX-License-Identifier: BSD-2-Clause
"""What people may do to runs, each to their own and some to all."""

from perfweb.accounts import audit
from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Means
from perfweb.accounts.permissions import Action
from perfweb.runs import services
from perfweb.runs.models import Run


def cancelling(run: Run, actor: Actor) -> Action:
    """What it is for somebody to end this run."""
    own = actor.means != Means.COMMAND and run.requested_by == actor.name
    return Action.CANCEL_OWN if own else Action.CANCEL_ANY


def cancel(number: int, actor: Actor) -> Run:
    """Ends a run for somebody. Raises RunError, NotAllowedError or NotNowError."""
    with audit.doing(actor, cancelling(services.get(number), actor), f"run {number}"):
        return services.cancel(number, actor.name)
