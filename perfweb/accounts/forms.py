# SPDX-License-Identifier: BSD-2-Clause
"""What is typed in on the pages of accounts."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm

from perfweb.accounts.actors import address_of
from perfweb.accounts.limits import Attempt
from perfweb.accounts.models import Means, Outcome, Scope, User
from perfweb.accounts.permissions import Action

LIFETIMES = {7: "a week", 30: "a month", 90: "three months", 365: "a year"}


class SignInForm(AuthenticationForm):
    """Name and password, which can be guessed only so often."""

    def clean(self) -> dict[str, Any]:
        """Check the password. Raises NotNowError after too many wrong ones."""
        assert self.request is not None  # noqa: S101 (the view gives it)
        name, password = (self.cleaned_data.get(field) for field in ("username", "password"))
        if not name or not password:
            return super().clean()
        attempt = Attempt(name, address_of(self.request))
        attempt.begin()
        cleaned = super().clean()
        attempt.right()
        return cleaned


class PasswordForm(PasswordChangeForm):
    """The old password, which can be guessed no more often than when signing in, and a new one."""

    def __init__(self, *arguments: Any, address: str | None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._address = address

    def clean_old_password(self) -> str:
        """Check the old password. Raises NotNowError after too many wrong ones."""
        attempt = Attempt(self.user.username, self._address)
        attempt.begin()
        old = super().clean_old_password()
        attempt.right()
        return old


class TokenForm(forms.Form):
    """A token to be made; its scope is at most what its owner may."""

    name = forms.CharField(max_length=64, label="Name", help_text="What it is for, and on which machine.")
    scope = forms.TypedChoiceField(coerce=lambda value: Scope(int(value)), label="May")
    days = forms.TypedChoiceField(choices=list(LIFETIMES.items()), coerce=int, initial=90, label="For")

    def __init__(self, owner: User, data: Any = None) -> None:
        super().__init__(data)
        allowed = [(scope.value, scope.label) for scope in Scope if scope <= owner.role]
        self.fields["scope"].choices = allowed  # type: ignore[attr-defined]


class LogForm(forms.Form):
    """Which lines of the log are wanted."""

    who = forms.CharField(required=False, max_length=150, label="Who")
    action = forms.ChoiceField(
        required=False, choices=[("", "anything"), *((action.value, action.value) for action in Action)], label="Did"
    )
    means = forms.ChoiceField(required=False, choices=[("", "by any means"), *Means.choices], label="Through")
    outcome = forms.ChoiceField(required=False, choices=[("", "done or refused"), *Outcome.choices], label="Outcome")
    since = forms.DateField(required=False, label="Since", widget=forms.DateInput(attrs={"type": "date"}))
    q = forms.CharField(required=False, max_length=200, label="About", widget=forms.TextInput(attrs={"type": "search"}))
