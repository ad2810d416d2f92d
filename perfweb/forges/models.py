# SPDX-License-Identifier: BSD-2-Clause
"""Projects on forges, their deliveries, and requests in comments with their results."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from perfweb.builds.models import Mirror
from perfweb.lab.models import Testbed
from perfweb.submissions.models import Submission


class ForgeName(models.TextChoices):
    GITHUB = "github", "GitHub"
    GITLAB = "gitlab", "GitLab"
    GITEA = "gitea", "Gitea or Forgejo"


class Project(models.Model):
    """A project whose pull requests are measured.  Its token and the secret of its webhook are files (secrets.py)."""

    mirror = models.OneToOneField(Mirror, models.PROTECT, related_name="project")
    forge = models.CharField(max_length=8, choices=ForgeName)
    api = models.CharField(max_length=500, help_text="such as https://api.github.com")
    path = models.CharField(max_length=200, help_text="owner/name")
    login = models.CharField(max_length=100, help_text="the bot's account name there, whose comments are ignored")
    testbed = models.ForeignKey(Testbed, models.PROTECT, related_name="+")
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        related_name="+",
        help_text=("author of requests by users without an account"),
    )

    class Meta:
        ordering = ["mirror__name"]
        constraints = [models.CheckConstraint(condition=Q(forge__in=ForgeName.values), name="forge_known")]

    def __str__(self) -> str:
        return self.mirror.name

    @classmethod
    def named(cls, mirror: str) -> "Project | None":
        """The project whose repository has that name, with the repository."""
        return cls.objects.select_related("mirror").filter(mirror__name=mirror).first()


class Member(models.Model):
    """A forge user on the allow-list.  A name can be given to another user, so the account number of the first comment
    is required for all others.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="members")
    login = models.CharField(max_length=100)
    person = models.BigIntegerField(null=True, blank=True, help_text="the forge's number of the account")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")

    class Meta:
        ordering = ["project", "login"]
        constraints = [models.UniqueConstraint("project", Lower("login"), name="member_once")]

    def __str__(self) -> str:
        return self.login


class Delivery(models.Model):
    """A received webhook. Neither its identifier nor its content is accepted twice."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="deliveries")
    identifier = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the body, which is what is signed")
    event = models.JSONField(help_text="parsed content (perfweb.forges.table.Event)")
    received = models.DateTimeField(auto_now_add=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    due = models.DateTimeField(null=True, blank=True, help_text="when to handle it; empty if that is done")

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["due"], name="delivery_by_due")]
        constraints = [
            models.UniqueConstraint(fields=["project", "identifier"], name="delivery_once"),
            models.UniqueConstraint(fields=["project", "digest"], name="delivered_content_once"),
        ]

    def __str__(self) -> str:
        return self.identifier


class CommentRequest(models.Model):
    """A request in a comment, and the service's comment that answers it."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="requests")
    pull = models.PositiveIntegerField(help_text="number of the pull request")
    comment = models.BigIntegerField(help_text="the forge's number of the comment")
    login = models.CharField(max_length=100)
    words = models.TextField(help_text="behind /perf")
    head = models.CharField(max_length=40, blank=True, help_text="the commit to measure")
    answer = models.TextField(blank=True, help_text="error in place of results")
    waiting = models.BooleanField(default=False, help_text="whether it failed and is tried again")
    submissions = models.ManyToManyField(Submission, related_name="+")
    outdated = models.BooleanField(default=False)
    settled = models.BooleanField(default=False, help_text="whether the service's comment is final")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["project", "pull"], name="request_by_pull")]
        constraints = [models.UniqueConstraint(fields=["project", "comment"], name="request_once")]

    def __str__(self) -> str:
        return f"comment {self.comment} on {self.project} {self.pull}"
