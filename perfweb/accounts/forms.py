# SPDX-License-Identifier: BSD-2-Clause
"""Forms of the account pages."""

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
    """Name and password, with a limit of attempts."""

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
    """The old password, with the rate limits of sign-in, and a new one."""

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
    """A new token; its scope is at most its owner's role."""

    name = forms.CharField(max_length=64, label="Name", help_text="Purpose of the token, and its machine.")
    scope = forms.TypedChoiceField(coerce=lambda value: Scope(int(value)), label="Scope")
    days = forms.TypedChoiceField(choices=list(LIFETIMES.items()), coerce=int, initial=90, label="Lifetime")

    def __init__(self, owner: User, data: Any = None) -> None:
        super().__init__(data)
        allowed = [(scope.value, scope.label) for scope in Scope if scope <= owner.role]
        self.fields["scope"].choices = allowed  # type: ignore[attr-defined]


class LogForm(forms.Form):
    """Filters of the audit log."""

    who = forms.CharField(required=False, max_length=150, label="User")
    action = forms.ChoiceField(
        required=False,
        choices=[("", "all actions"), *((action.value, action.value) for action in Action)],
        label="Action",
    )
    means = forms.ChoiceField(required=False, choices=[("", "all interfaces"), *Means.choices], label="Interface")
    outcome = forms.ChoiceField(required=False, choices=[("", "all outcomes"), *Outcome.choices], label="Outcome")
    since = forms.DateField(required=False, label="Since", widget=forms.DateInput(attrs={"type": "date"}))
    q = forms.CharField(
        required=False, max_length=200, label="Object", widget=forms.TextInput(attrs={"type": "search"})
    )
