# SPDX-License-Identifier: BSD-2-Clause
"""Received mails, and the series that they form."""

from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from perfweb.submissions.models import Submission

LONGEST_ADDRESS = 254
LONGEST_ID = 250
PATIENCE = timedelta(minutes=30)
"""Time after the last mail of a series before a missing one is reported, and in which one without threading fits."""


class Address(models.Model):
    """A mail address that an administrator has assigned to an account."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="mail_addresses")
    address = models.EmailField(unique=True)

    class Meta:
        ordering = ["address"]
        constraints = [models.CheckConstraint(condition=Q(address=Lower("address")), name="address_in_lower_case")]

    def __str__(self) -> str:
        return self.address


class SeriesState(models.TextChoices):
    GATHERING = "gathering", "gathering"
    SUBMITTED = "submitted", "submitted"
    OVER = "over", "over"


class Series(models.Model):
    """The patches of one version of a series, by one sender. `user` is the account of a proven sender that has one."""

    sender = models.CharField(max_length=LONGEST_ADDRESS)
    proven = models.BooleanField(default=False, help_text="whether a signature proves the sender of all its mails")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    reply_to = ArrayField(
        models.CharField(max_length=LONGEST_ADDRESS),
        default=list,
        help_text=("addresses for responses, if not the sender"),
    )
    copy_to = models.CharField(max_length=LONGEST_ADDRESS, blank=True, help_text="address of the mailing list")
    version = models.PositiveSmallIntegerField(default=1)
    total = models.PositiveSmallIntegerField(null=True, help_text="null for a patch that is alone")
    state = models.CharField(max_length=16, choices=SeriesState, default=SeriesState.GATHERING)
    trailer = models.BooleanField(default=False, help_text="whether a line Perf-tested-by was requested")
    submissions = models.ManyToManyField(Submission, related_name="series")
    changed = models.DateTimeField(default=timezone.now, help_text="time of its newest mail")

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["state"], name="series_by_state")]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=SeriesState.values), name="series_state_known"),
        ]

    def __str__(self) -> str:
        return f"series {self.pk} of {self.sender}"


class Posting(models.Model):
    """A mail of a series. `related` has its own Message-ID and those that it answers."""

    series = models.ForeignKey(Series, models.CASCADE, related_name="postings")
    message_id = models.CharField(max_length=LONGEST_ID, unique=True)
    related = ArrayField(models.CharField(max_length=LONGEST_ID))
    subject = models.CharField(max_length=200)
    title = models.CharField(max_length=200, help_text="the subject without [PATCH …]")
    number = models.PositiveSmallIntegerField(null=True)
    request = models.TextField(blank=True, help_text="the text after `perf:`")
    mbox = models.BinaryField(help_text="the input of perfweb.builds.patches")
    problem = models.TextField(blank=True)

    class Meta:
        ordering = ["number", "pk"]
        indexes = [GinIndex(fields=["related"], name="posting_by_relatives")]

    def __str__(self) -> str:
        return self.message_id
