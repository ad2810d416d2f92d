# SPDX-License-Identifier: BSD-2-Clause
"""Accounts, their tokens, and the log of what was done with them."""

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.auth.validators import ASCIIUsernameValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone


class Role(models.IntegerChoices):
    """How far an account is trusted; each role may do what those before it may (perfweb.accounts.permissions)."""

    READER = 1, "reader"
    SUBMITTER = 2, "submitter"
    MAINTAINER = 3, "maintainer"
    ADMIN = 4, "admin"


class User(AbstractUser):
    """An account. Groups, permissions and the flags of Django's own administration are not used: there is the role."""

    username = models.CharField(
        max_length=150,
        unique=True,
        validators=[ASCIIUsernameValidator()],  # names that only look alike would be a trap
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
    """An account elsewhere with which the owner of one here signs in. Nothing opens it that is kept here."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=200, help_text="address of who knows them there")
    subject = models.CharField(max_length=255, help_text="what they are called there for ever")
    name = models.CharField(max_length=150, help_text="what they were called there when this was made")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created"]
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_for_an_identity")]

    def __str__(self) -> str:
        return f"{self.name} at {self.issuer}"


class Scope(models.IntegerChoices):
    """What a token may be used for: never more than its role, and never more than its owner may."""

    READ = Role.READER, "read"
    SUBMIT = Role.SUBMITTER, "submit"
    MAINTAIN = Role.MAINTAINER, "maintain"


class Token(models.Model):
    """A secret with which a program acts for an account. Only its SHA-256 is kept: it is shown once and never again.

    The secret has 256 random bits, so there is nothing to guess that a slow hash would have to make dear.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=64, help_text="what it is for, and on which machine")
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
        """Whether it opens anything."""
        return self.revoked is None and self.expires > timezone.now()


class Means(models.TextChoices):
    """Through what something was done."""

    PAGE = "page", "page"
    API = "API", "API"
    COMMAND = "command", "command"
    COMMENT = "comment", "comment on a forge"
    MAIL = "mail", "mail"


class Outcome(models.TextChoices):
    DONE = "done", "done"
    REFUSED = "refused", "refused"


class Entry(models.Model):
    """One line of the log: who did what to what, when, from where and how. The database lets nobody change or delete
    one (a trigger, see the first migration).
    """

    time = models.DateTimeField(auto_now_add=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+")
    who = models.CharField(max_length=150, help_text="name of the account, of a command that of the system's user")
    means = models.CharField(max_length=8, choices=Means)
    token = models.CharField(max_length=64, blank=True, help_text="name of the token, if it was done with one")
    address = models.GenericIPAddressField(null=True, blank=True)
    action = models.CharField(max_length=32)
    subject = models.CharField(max_length=200, blank=True, help_text="to what: 'run 12'")
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
