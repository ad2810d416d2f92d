# SPDX-License-Identifier: BSD-2-Clause
"""Accounts, their tokens, and the audit log."""

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.auth.validators import ASCIIUsernameValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone


class Role(models.IntegerChoices):
    """The role of an account; each one has the permissions of those before it (perfweb.accounts.permissions)."""

    READER = 1, "reader"
    SUBMITTER = 2, "submitter"
    MAINTAINER = 3, "maintainer"
    ADMIN = 4, "admin"


class User(AbstractUser):
    """An account. Django's own groups, permissions and administration flags are not used; the role replaces them."""

    username = models.CharField(
        max_length=150,
        unique=True,
        validators=[ASCIIUsernameValidator()],  # names that only look alike could mislead
        error_messages={"unique": "An account of that name already exists."},
    )
    role = models.PositiveSmallIntegerField(choices=Role, default=Role.READER)

    class Meta:
        ordering = ["username"]
        constraints = [
            models.CheckConstraint(condition=Q(role__in=Role.values), name="role_known"),
            models.UniqueConstraint(Lower("username"), name="one_name_in_any_case"),
        ]


class Identity(models.Model):
    """An external account with which a local user signs in. It has no secret that is stored here."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=200, help_text="address of the provider")
    subject = models.CharField(max_length=255, help_text="permanent id at the provider")
    name = models.CharField(max_length=150, help_text="name at the provider when this was made")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created"]
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_for_an_identity")]

    def __str__(self) -> str:
        return f"{self.name} at {self.issuer}"


class Scope(models.IntegerChoices):
    """The scope of a token: never more than its owner's permissions."""

    READ = Role.READER, "read"
    SUBMIT = Role.SUBMITTER, "submit"
    MAINTAIN = Role.MAINTAINER, "maintain"


class Token(models.Model):
    """A secret with which a program acts for an account. Only its SHA-256 is stored: it is shown once.

    The secret has 256 random bits, so it cannot be guessed, and a fast hash suffices.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=64, help_text="purpose, and the machine that uses it")
    digest = models.CharField(max_length=64, unique=True)
    scope = models.PositiveSmallIntegerField(choices=Scope, default=Scope.READ)
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    revoked = models.DateTimeField(null=True, blank=True)
    used = models.DateTimeField(null=True, blank=True, help_text="last use, to the minute")

    class Meta:
        ordering = ["-created"]
        constraints = [models.CheckConstraint(condition=Q(scope__in=Scope.values), name="scope_known")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_live(self) -> bool:
        """Return whether the token is valid."""
        return self.revoked is None and self.expires > timezone.now()


class Means(models.TextChoices):
    """The interface of an action."""

    PAGE = "page", "page"
    API = "API", "API"
    COMMAND = "command", "command"
    COMMENT = "comment", "comment on a forge"
    MAIL = "mail", "mail"


class Outcome(models.TextChoices):
    DONE = "done", "done"
    REFUSED = "refused", "refused"


class Entry(models.Model):
    """A line of the audit log: actor, action, subject, time, address and interface. A trigger in the database forbids
    to change or delete it (see the first migration).
    """

    time = models.DateTimeField(auto_now_add=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+")
    who = models.CharField(max_length=150, help_text="name of the account; of a command, that of the system's user")
    means = models.CharField(max_length=8, choices=Means)
    token = models.CharField(max_length=64, blank=True, help_text="name of the token, if one was used")
    address = models.GenericIPAddressField(null=True, blank=True)
    action = models.CharField(max_length=32)
    subject = models.CharField(max_length=200, blank=True, help_text="subject of the action: 'run 12'")
    detail = models.TextField(blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome, default=Outcome.DONE)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["who", "id"], name="entry_by_who")]
        constraints = [
            models.CheckConstraint(condition=Q(means__in=Means.values), name="means_known"),
            models.CheckConstraint(condition=Q(outcome__in=Outcome.values), name="outcome_known"),
        ]

    def __str__(self) -> str:
        return f"{self.who}: {self.action} {self.subject} ({self.outcome})"
