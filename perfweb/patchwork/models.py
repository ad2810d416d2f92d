# SPDX-License-Identifier: BSD-2-Clause
"""Projects of Patchwork that are polled, and their series."""

from django.conf import settings
from django.db import models

from perfweb.builds.models import Mirror
from perfweb.lab.models import Testbed
from perfweb.submissions.models import Submission


class Project(models.Model):
    """A project of a Patchwork whose new series are submitted.  Its token is a file (client.py)."""

    name = models.SlugField(max_length=40, unique=True, help_text="its name here")
    api = models.CharField(max_length=500, help_text="such as https://patchwork.example.org/api/1.3")
    project = models.SlugField(max_length=100, help_text="its name there, in the addresses of its pages")
    states = models.JSONField(default=list, help_text="states of the patches that are measured: new, under-review")
    mirror = models.ForeignKey(Mirror, models.PROTECT, related_name="+", help_text="where patches are applied")
    testbed = models.ForeignKey(Testbed, models.PROTECT, related_name="+")
    matrix = models.CharField(max_length=64, help_text="name of the tests")
    each = models.BooleanField(default=False, help_text="whether series are measured patch by patch")
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", help_text="their author")
    since = models.DateTimeField(help_text="time of the newest known patch; older ones are not read again")
    due = models.DateTimeField(help_text="when it is polled next")
    problem = models.TextField(blank=True, help_text="error of the last poll")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Series(models.Model):
    """A series of a project: first without its patches, then submitted or with the reason why it is not."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="series")
    number = models.PositiveBigIntegerField(help_text="its number there")
    name = models.CharField(max_length=255, blank=True)
    version = models.PositiveIntegerField(default=1)
    submitter = models.PositiveBigIntegerField(default=0, help_text="number of its sender there")
    patches = models.JSONField(default=list, help_text="numbers of its patches there, in order")
    submission = models.ForeignKey(Submission, models.SET_NULL, null=True, blank=True, related_name="+")
    problem = models.TextField(blank=True, help_text="why it is not measured")
    settled = models.BooleanField(default=False, help_text="whether its checks are final")
    created = models.DateTimeField(auto_now_add=True)
    tried = models.DateTimeField(null=True, help_text="time of the last attempt to submit it")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="patchwork_series_once")]

    def __str__(self) -> str:
        return f"series {self.number} of {self.project}"
