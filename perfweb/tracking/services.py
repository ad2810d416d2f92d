# SPDX-License-Identifier: BSD-2-Clause
"""Actions on tracked branches and alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator, validate_email

from perfweb.accounts import audit
from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Role, User
from perfweb.accounts.permissions import Action
from perfweb.builds import mirrors
from perfweb.builds.models import Mirror
from perfweb.builds.repositories import RepositoryError
from perfweb.runs.planfile import COMMIT, PlanError
from perfweb.runs.services import RunError, testbed_for
from perfweb.tracking import history, states
from perfweb.tracking.alerts import notifications
from perfweb.tracking.measuring import TrackedPlanError, check_plan
from perfweb.tracking.models import Alert, AlertState, TrackedBranch
from perfweb.transitions import IllegalTransitionError


class TrackingError(ValueError):
    """The action is not possible; the message has the reason and what to do."""


PROBLEMS = (TrackingError, TrackedPlanError, PlanError, RepositoryError, RunError, IllegalTransitionError)
"""The errors of a request, each with a message for users."""


@dataclass(frozen=True)
class BranchRequest:
    """A branch to track: `mirror` is a registered repository, empty for the service's own; `since` names the first
    commit, empty for the tip.
    """

    name: str
    plan: str
    testbed: str
    mirror: str = ""
    branch: str = "HEAD"
    since: str = ""
    rhythm: str = "push"
    every: int = 1
    threshold: float = 0.5
    budget: int = 240
    mail_to: str = ""
    hook: str = ""
    issues: bool = False


def track(actor: Actor, wanted: BranchRequest) -> TrackedBranch:
    """Track a branch, or change the settings of a tracked one. Raises one of PROBLEMS.

    Existing results stay, so another first commit or plan needs another name, because it is another series.
    """
    spec = check_plan(wanted.plan)
    known = TrackedBranch.objects.filter(name=wanted.name).first()
    if known:
        _check_real(known)
    branch = known or TrackedBranch(name=wanted.name, plan=wanted.plan)
    branch.mirror = mirrors.find(wanted.mirror)
    mirrors.require_targets(branch.mirror, [one.target for one in spec.variants if one.source == COMMIT])
    branch.branch, branch.testbed = wanted.branch, testbed_for(spec, wanted.testbed)
    branch.rhythm, branch.every = wanted.rhythm, wanted.every
    branch.threshold, branch.budget, branch.mail_to = wanted.threshold, wanted.budget, _addresses(wanted.mail_to)
    branch.hook, branch.issues = _hook(wanted.hook), _issues(wanted.issues, branch.mirror)
    start = wanted.since or wanted.branch
    first = history.fetched(branch, start, seconds=mirrors.PAGE_SECONDS).commit(start).sha
    if known and ((wanted.since and known.since != first) or known.plan != wanted.plan):
        raise TrackingError(
            f"{known} is tracked since {known.since[:10]} with another plan or start: take another name"
        )
    branch.since, branch.active = known.since if known else first, True
    try:
        branch.full_clean()
    except ValidationError as error:
        raise TrackingError(_in_words(error.message_dict)) from None
    with audit.action(actor, Action.TRACK, f"branch {branch.name}", f"{branch.branch}, {branch.rhythm_words}"):
        branch.save()
    return branch


def pause(actor: Actor, name: str, *, active: bool) -> TrackedBranch:
    """Pause or resume the measurements of a branch. Raises TrackingError."""
    branch = find(name)
    _check_real(branch)
    with audit.action(actor, Action.TRACK, f"branch {branch.name}", "resumed" if active else "paused"):
        branch.active = active
        branch.save(update_fields=["active"])
    return branch


def _check_real(branch: TrackedBranch) -> None:
    """Raises TrackingError if the branch is a sample, which measures nothing."""
    if branch.testbed.sample:
        raise TrackingError(f"{branch} is a sample, and measures nothing: use another branch")


@dataclass(frozen=True)
class AlertUpdate:
    """A change of an alert by a user: another state, another owner and due date (None leaves both), a comment."""

    state: str = ""
    owner: str | None = None
    due: date | None = None
    text: str = ""


def update_alert(actor: Actor, number: int, update: AlertUpdate) -> Alert:
    """Apply a user's update to an alert.  Raises one of PROBLEMS."""
    alert = find_alert(number)
    if update.state and update.state not in AlertState.values:
        there_are = ", ".join(sorted(states.BY_PEOPLE))
        raise TrackingError(f"“{update.state[:40]}” is no state of an alert; people give {there_are}")
    owned = update.owner is not None and (update.owner, update.due) != (
        alert.owner.username if alert.owner else "",
        alert.due,
    )
    text = update.text.strip()
    if not (update.state or owned or text):
        raise TrackingError("Nothing to save: choose a state, an owner or a due date, or write a comment.")
    with audit.action(actor, Action.JUDGE_ALERT, str(alert), update.state or "comment"):
        if owned:
            _assign(alert, actor, update)
        if update.state:
            states.judge(number, AlertState(update.state), actor.name, text)
        elif text:
            states.note(alert, actor.name, text)
    alert.refresh_from_db()
    notifications.issue(alert)
    if update.state or text:
        notifications.updated(alert, alert.steps.latest("pk"))
    return alert


def _assign(alert: Alert, actor: Actor, update: AlertUpdate) -> None:
    user = User.objects.filter(username__iexact=update.owner, is_active=True, role__gte=Role.SUBMITTER).first()
    if update.owner and user is None:
        raise TrackingError(f"There is no account “{update.owner[:40]}” that may look after an alert.")
    alert.owner, alert.due = user, update.due
    alert.save(update_fields=["owner", "due"])
    until = f", due {update.due}" if update.due else ""
    states.note(alert, actor.name, f"Looked after by {user.username if user else 'nobody'}{until}.")


def find(name: str) -> TrackedBranch:
    """Return the tracked branch of this name. Raises TrackingError."""
    branch = TrackedBranch.objects.select_related("mirror", "testbed").filter(name=name).first()
    if branch is None:
        there_are = ", ".join(TrackedBranch.objects.values_list("name", flat=True)) or "none; manage.py track makes one"
        raise TrackingError(f"No branch “{name[:64]}” is tracked; there are: {there_are}")
    return branch


def find_alert(number: int) -> Alert:
    """Return alert `number`. Raises TrackingError."""
    alert = Alert.objects.filter(number=number).first()
    if alert is None:
        raise TrackingError(f"there is no alert {number}")
    return alert


def _addresses(text: str) -> str:
    """Check mail addresses, one on a line."""
    found = text.replace(",", " ").split()
    for address in found:
        try:
            validate_email(address)
        except ValidationError:
            raise TrackingError(f"“{address[:80]}” is no address of mail") from None
    return "\n".join(found)


def _hook(url: str) -> str:
    """Check the address that alerts are posted to."""
    try:
        if url:
            URLValidator(schemes=["https", "http"])(url)
    except ValidationError:
        raise TrackingError(f"“{url[:80]}” is no address that begins with https:// or http://") from None
    return url


def _issues(wanted: bool, mirror: Mirror | None) -> bool:
    if wanted and notifications.project_of(mirror) is None:
        raise TrackingError(
            "issues need a forge: name a --repository that manage.py register_repository --forge has registered"
        )
    return wanted


def _in_words(problems: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{field}: {' '.join(messages)}" for field, messages in problems.items())
