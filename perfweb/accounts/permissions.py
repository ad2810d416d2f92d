# SPDX-License-Identifier: BSD-2-Clause
"""Permissions: one table of all actions that change data, with the lowest role that each requires."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet

from perfweb.accounts.models import Role, User

if TYPE_CHECKING:
    from perfweb.accounts.actors import Actor


class Action(StrEnum):
    """Actions, besides public reading. The values are in the audit log."""

    SIGN_IN = "sign in"
    SET_PASSWORD = "set password by link"  # noqa: S105
    SIGN_OUT = "sign out"
    MAKE_OWN_ACCOUNT = "make own account"
    DELIVER = "deliver webhook"
    SEE_ACCOUNT = "see own account"
    CHANGE_PASSWORD = "change password"  # noqa: S105
    LINK = "link account elsewhere"
    UNLINK = "unlink account elsewhere"
    MAKE_TOKEN = "make token"  # noqa: S105
    REVOKE_TOKEN = "revoke token"  # noqa: S105
    SUBMIT = "submit"
    CANCEL_OWN = "cancel own"
    CANCEL_ANY = "cancel any"
    APPROVE = "approve"
    RESUME = "resume"
    MEASURE_AGAIN = "measure again"
    PRIORITISE = "prioritise"
    FREE_TESTBED = "free testbed"
    MAINTAIN_TESTBED = "maintain testbed"
    IMPORT = "import"
    JUDGE_ALERT = "judge alert"
    WATCH = "watch alerts"
    CONFIRM_ADDRESS = "confirm address"
    UNSUBSCRIBE = "unsubscribe"
    TRACK = "track branch"
    READ_LOG = "read log"
    REGISTER_TESTBED = "register testbed"
    REGISTER_REPOSITORY = "register repository"
    MANAGE_ACCOUNTS = "manage accounts"


LOWEST_ROLE: dict[Action, Role | None] = {
    Action.SIGN_IN: None,
    Action.SET_PASSWORD: None,
    Action.SIGN_OUT: None,
    Action.MAKE_OWN_ACCOUNT: None,
    Action.DELIVER: None,
    Action.SEE_ACCOUNT: Role.READER,
    Action.CHANGE_PASSWORD: Role.READER,
    Action.LINK: Role.READER,
    Action.UNLINK: Role.READER,
    Action.MAKE_TOKEN: Role.READER,
    Action.REVOKE_TOKEN: Role.READER,
    Action.SUBMIT: Role.SUBMITTER,
    Action.CANCEL_OWN: Role.SUBMITTER,
    Action.CANCEL_ANY: Role.MAINTAINER,
    Action.APPROVE: Role.MAINTAINER,
    Action.RESUME: Role.MAINTAINER,
    Action.MEASURE_AGAIN: Role.MAINTAINER,
    Action.PRIORITISE: Role.MAINTAINER,
    Action.FREE_TESTBED: Role.MAINTAINER,
    Action.MAINTAIN_TESTBED: Role.MAINTAINER,
    Action.IMPORT: Role.MAINTAINER,
    Action.JUDGE_ALERT: Role.SUBMITTER,
    Action.WATCH: Role.READER,
    Action.CONFIRM_ADDRESS: None,
    Action.UNSUBSCRIBE: None,
    Action.TRACK: Role.MAINTAINER,
    Action.READ_LOG: Role.MAINTAINER,
    Action.REGISTER_TESTBED: Role.ADMIN,
    Action.REGISTER_REPOSITORY: Role.ADMIN,
    Action.MANAGE_ACCOUNTS: Role.ADMIN,
}
"""None means that no account is required."""


class NotAllowedError(PermissionDenied):
    """The user's role does not allow the action; the message names the role that does."""

    def __init__(self, action: Action) -> None:
        lowest = LOWEST_ROLE[action]
        needed = f"the role {lowest.label}" if lowest else "nothing"
        super().__init__(f"“{action}” needs {needed}, or one above it. An administrator gives roles.")
        self.action = action


def able(action: Action) -> QuerySet[User]:
    """Select the active accounts that may take an action."""
    return User.objects.filter(is_active=True, role__gte=LOWEST_ROLE[action] or 0)


def may(who: User | AnonymousUser | Actor, action: Action) -> bool:
    """Return whether an account, or an actor for one, may take an action."""
    lowest = LOWEST_ROLE[action]
    return lowest is None or (who.is_active and getattr(who, "role", 0) >= lowest)
