# SPDX-License-Identifier: BSD-2-Clause
"""A submission: a patch, its base, the plan that measures it, and its state."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from perfweb.builds.models import Mirror
from perfweb.lab.models import Testbed
from perfweb.runs.models import Run


class SubmissionState(models.TextChoices):
    RECEIVED = "received", "received"
    CONFLICT = "conflict", "does not apply"
    WAITING = "waiting", "waiting for approval"
    APPROVED = "approved", "approved"
    REFUSED = "refused", "refused"
    CANCELLED = "cancelled", "cancelled"


class Submission(models.Model):
    """Only perfweb.submissions.states changes `state`. The progress after approval is that of its runs."""

    number = models.BigAutoField(primary_key=True)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="submissions")
    title = models.CharField(max_length=200)
    patch = models.BinaryField(help_text="the patch as received")
    mirror = models.ForeignKey(
        Mirror, models.PROTECT, null=True, blank=True, related_name="submissions",
        help_text="repository of the base; empty for the service's own",
    )  # fmt: skip
    base = models.CharField(max_length=40, help_text="the commit to which it is applied")
    revision = models.CharField(max_length=80, help_text="`git describe` of the base")
    stages = models.JSONField(default=list, help_text="each patch: subject, author, and files with their lines")
    content = models.CharField(max_length=64, blank=True, help_text="hash of base, patched trees and plan")
    plan = models.TextField(help_text="the YAML plan of its runs")
    testbed = models.ForeignKey(Testbed, models.PROTECT, related_name="submissions")
    seconds = models.PositiveIntegerField(help_text="estimated testbed time when it was received")
    state = models.CharField(max_length=16, choices=SubmissionState, default=SubmissionState.RECEIVED)
    reason = models.TextField(blank=True, help_text="reason of the state, if it needs one")
    runs = models.ManyToManyField(Run, related_name="submissions")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        indexes = [
            models.Index(fields=["state"], name="submission_by_state"),
            models.Index(fields=["content"], name="submission_by_content"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=SubmissionState.values), name="submission_state_known"),
            models.CheckConstraint(condition=Q(base__regex=r"^[0-9a-f]{40}$"), name="submission_base_is_hash"),
        ]

    def __str__(self) -> str:
        return f"submission {self.number}"

    @property
    def address(self) -> str:
        """The whole address of its page, for texts that leave the site."""
        return f"{settings.SITE_URL}{reverse('submissions:one', args=[self.number])}"

    @property
    def newest_run(self) -> Run | None:
        """The last run that measures it: one query each time."""
        return self.runs.select_related("plan", "testbed").order_by("number").last()


class SubmissionTransition(models.Model):
    """One step of a submission; together they are its history."""

    submission = models.ForeignKey(Submission, models.CASCADE, related_name="transitions")
    at = models.DateTimeField(auto_now_add=True)
    from_state = models.CharField(
        max_length=16, choices=SubmissionState, blank=True, help_text=("empty for the first step")
    )
    to_state = models.CharField(max_length=16, choices=SubmissionState)
    who = models.CharField(max_length=150)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["submission_id", "pk"]

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"
