# SPDX-License-Identifier: BSD-2-Clause
"""Tracked branches with their commits, the analyses of their results, and the resulting alerts."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse

from perfweb.builds.models import Mirror
from perfweb.lab.models import Testbed
from perfweb.runs.models import Run
from perfweb.stats.ratio import Change


class Rhythm(models.TextChoices):
    PUSH = "push", "every commit"
    EVERY = "every", "every N commits"
    NIGHTLY = "nightly", "the last commit of each day"


class TrackedBranch(models.Model):
    """A branch whose commits are measured with one plan on one testbed."""

    name = models.SlugField(max_length=64, unique=True)
    mirror = models.ForeignKey(
        Mirror, models.PROTECT, null=True, blank=True, related_name="tracked",
        help_text="the repository; empty for the service's own",
    )  # fmt: skip
    branch = models.CharField(max_length=100, default="HEAD")
    plan = models.TextField(help_text="the YAML plan of its runs; its variants are built from the commit")
    testbed = models.ForeignKey(Testbed, models.PROTECT, related_name="tracked")
    rhythm = models.CharField(max_length=8, choices=Rhythm, default=Rhythm.PUSH)
    every = models.PositiveIntegerField(
        default=1, validators=[MinValueValidator(1)], help_text="N of “every N commits”"
    )
    since = models.CharField(max_length=40, help_text="the first commit that is tracked")
    threshold = models.FloatField(
        default=0.5, validators=[MinValueValidator(0.0), MaxValueValidator(50.0)],
        help_text="percent; smaller changes are shown, but raise no alert",
    )  # fmt: skip
    budget = models.PositiveIntegerField(
        default=240, help_text="minutes of testbed time for confirming and bisecting one change"
    )
    mail_to = models.TextField(
        blank=True, help_text=("addresses that get a mail for each confirmed change, one on a line")
    )
    hook = models.CharField(max_length=500, blank=True, help_text="address that alerts are posted to as JSON")
    issues = models.BooleanField(default=False, help_text="whether each confirmed change is an issue on its forge")
    active = models.BooleanField(default=True)
    looked = models.DateTimeField(null=True, blank=True, help_text="time of the last listing of its commits")
    problem = models.TextField(blank=True, help_text="why its commits could not be listed, or packed")
    analysed = models.CharField(max_length=64, blank=True, help_text="digest of the last analysed results")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "tracked branches"
        constraints = [
            models.CheckConstraint(condition=Q(rhythm__in=Rhythm.values), name="tracked_rhythm_known"),
            models.CheckConstraint(condition=Q(every__gte=1), name="tracked_every_is_positive"),
            models.CheckConstraint(condition=Q(since__regex=r"^[0-9a-f]{40}$"), name="tracked_since_is_hash"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def rhythm_words(self) -> str:
        """The rhythm of measurements."""
        return f"every {self.every} commits" if self.rhythm == Rhythm.EVERY else self.get_rhythm_display()


class TrackedCommit(models.Model):
    """A commit that changes the stack, by its position among the branch's first parents."""

    branch = models.ForeignKey(TrackedBranch, models.CASCADE, related_name="commits")
    position = models.PositiveIntegerField(
        null=True, help_text="its position on the branch, from 1; empty once the branch has been rewritten without it"
    )
    sha = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    author = models.CharField(max_length=150)
    committed = models.DateTimeField()
    wanted = models.BooleanField(default=False, help_text="selected by the rhythm")
    problem = models.TextField(blank=True, help_text="why it cannot be measured at all")
    runs = models.ManyToManyField(Run, related_name="tracked_commits", help_text="the run of this commit alone")

    class Meta:
        ordering = ["branch_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["branch", "sha"], name="tracked_commit_once"),
            models.CheckConstraint(condition=Q(sha__regex=r"^[0-9a-f]{40}$"), name="tracked_commit_is_hash"),
        ]

    def __str__(self) -> str:
        return f"{self.short} {self.subject}"

    @property
    def short(self) -> str:
        return self.sha[:10]


class Analysis(models.Model):
    """The change points of a branch's series at one time. A version never changes and is never deleted: a later
    analysis is another version with its reason.
    """

    branch = models.ForeignKey(TrackedBranch, models.CASCADE, related_name="analyses")
    version = models.PositiveIntegerField()
    made = models.DateTimeField(auto_now_add=True)
    rules = models.CharField(max_length=16, help_text="digest of the statistics' version")
    reason = models.TextField(help_text="why it differs from the version before")

    class Meta:
        ordering = ["branch_id", "-version"]
        verbose_name_plural = "analyses"
        constraints = [models.UniqueConstraint(fields=["branch", "version"], name="analysis_version_once")]

    def __str__(self) -> str:
        return f"version {self.version} of {self.branch}"


class Shift(models.Model):
    """A change point: after the commit `since`, most likely at `place`, at `until` or before."""

    analysis = models.ForeignKey(Analysis, models.CASCADE, related_name="shifts")
    variant = models.CharField(max_length=64)
    test = models.CharField(max_length=64)
    environment = models.CharField(max_length=32, blank=True)
    since = models.ForeignKey(TrackedCommit, models.CASCADE, related_name="+")
    place = models.ForeignKey(TrackedCommit, models.CASCADE, related_name="+")
    until = models.ForeignKey(TrackedCommit, models.CASCADE, related_name="+")
    before = models.FloatField()
    after = models.FloatField()
    percent = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    better = models.BooleanField()

    class Meta:
        ordering = ["analysis_id", "place__position", "test", "variant"]

    def __str__(self) -> str:
        return f"{self.test} on {self.variant}: {self.percent:+.2f} %"


class AlertState(models.TextChoices):
    NEW = "new", "being confirmed"
    REFUTED = "refuted", "not seen again"
    CONFIRMED = "confirmed", "confirmed"
    ACKNOWLEDGED = "acknowledged", "acknowledged"
    FIXED = "fixed", "fixed"
    NOT_A_BUG = "not-a-bug", "not a bug"
    INFRASTRUCTURE = "infrastructure", "infrastructure"


class AlertQuerySet(models.QuerySet["Alert"]):
    def to_show(self) -> AlertQuerySet:
        """Select everything for a row of a list: two queries."""
        related = self.select_related("branch__testbed", "since", "until", "culprit", "owner")
        return related.prefetch_related("movements")

    def real(self) -> AlertQuerySet:
        """Leave out those of samples."""
        return self.filter(branch__testbed__sample="")

    def real_unless_none(self) -> AlertQuerySet:
        """Leave out those of samples, if there are others."""
        return self.filter(models.Q(branch__testbed__sample="") | ~models.Exists(Alert.objects.real()))


class Alert(models.Model):
    """Movements between two commits that belong together. Only perfweb.tracking.states changes `state`."""

    number = models.BigAutoField(primary_key=True)
    branch = models.ForeignKey(TrackedBranch, models.CASCADE, related_name="alerts")
    state = models.CharField(max_length=16, choices=AlertState, default=AlertState.NEW)
    since = models.ForeignKey(
        TrackedCommit, models.PROTECT, related_name="+", help_text="the last one before the change"
    )
    until = models.ForeignKey(
        TrackedCommit, models.PROTECT, related_name="+", help_text="the first one certainly after it"
    )
    culprit = models.ForeignKey(
        TrackedCommit,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="blamed",
        help_text="the result of bisection",
    )
    probability = models.FloatField(null=True, blank=True, help_text="probability of the culprit")
    conclusion = models.TextField(
        blank=True, help_text=("result of confirmation and bisection; empty while they continue")
    )
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="alerts")
    due = models.DateField(null=True, blank=True)
    created = models.DateTimeField(auto_now_add=True)

    objects = AlertQuerySet.as_manager()

    class Meta:
        ordering = ["-number"]
        indexes = [models.Index(fields=["branch", "state"], name="alert_by_branch_and_state")]
        constraints = [models.CheckConstraint(condition=Q(state__in=AlertState.values), name="alert_state_known")]

    def __str__(self) -> str:
        return f"alert {self.number}"

    @property
    def address(self) -> str:
        """The whole address of its page, for texts that leave the site."""
        return f"{settings.SITE_URL}{reverse('tracking:alert', args=[self.number])}"


class Movement(models.Model):
    """The movement of one test on one variant in an alert: the suspected and the confirmed change."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="movements")
    variant = models.CharField(max_length=64)
    test = models.CharField(max_length=64)
    better = models.BooleanField()
    suspected = models.FloatField(help_text="percent, from the levels of the series")
    percent = models.FloatField(null=True, help_text="verdict of the interleaved run; empty before it")
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    confirmed = models.BooleanField(null=True, help_text="empty before a run")

    class Meta:
        ordering = ["alert_id", "test", "variant"]
        constraints = [models.UniqueConstraint(fields=["alert", "variant", "test"], name="movement_once")]

    def __str__(self) -> str:
        return f"{self.test} on {self.variant}"

    @property
    def size(self) -> float:
        """The change in percent, as far as it is known."""
        return self.suspected if self.percent is None else self.percent

    @property
    def change(self) -> Change | None:
        """The change in the confirming run, None until there is one."""
        if self.percent is None or self.low is None or self.high is None:
            return None
        return Change(self.percent, self.low, self.high)

    @property
    def clearness(self) -> float:
        """The change in units of its own uncertainty; 0 until it is measured."""
        return abs(self.change.percent) / max(self.change.high - self.change.low, 1e-9) if self.change else 0.0


class AlertStep(models.Model):
    """A step in the life of an alert, or a comment; together they are its history."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="steps")
    at = models.DateTimeField(auto_now_add=True)
    from_state = models.CharField(max_length=16, choices=AlertState, blank=True)
    to_state = models.CharField(max_length=16, choices=AlertState, blank=True, help_text="empty if unchanged")
    who = models.CharField(max_length=150)
    text = models.TextField(blank=True)

    class Meta:
        ordering = ["alert_id", "pk"]

    def __str__(self) -> str:
        return f"{self.who}: {self.get_to_state_display() or self.text[:40]}"


class Check(models.Model):
    """A run for an alert that measures a commit alternately with `since`, boot by boot."""

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="checks")
    commit = models.ForeignKey(TrackedCommit, models.PROTECT, related_name="checks")
    run = models.OneToOneField(Run, models.PROTECT, related_name="check_of")

    class Meta:
        ordering = ["alert_id", "pk"]

    def __str__(self) -> str:
        return f"{self.commit.short} in {self.run}"


class AddressKind(models.TextChoices):
    MAIL = "mail", "mail address"
    WEBHOOK = "webhook", "webhook"


class AlertAddress(models.Model):
    """Where a user is notified of watched alerts. Nothing is sent there before its owner has confirmed it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="alert_addresses")
    kind = models.CharField(max_length=7, choices=AddressKind, default=AddressKind.MAIL)
    address = models.CharField(max_length=500, help_text="a mail address or a URL")
    confirmed = models.DateTimeField(null=True, blank=True, help_text="empty until its owner has confirmed it")
    key = models.CharField(max_length=32, blank=True, help_text="what the secret of a webhook is derived from")

    class Meta:
        ordering = ["user_id", "kind"]
        constraints = [models.UniqueConstraint(fields=["user", "kind"], name="address_once")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.user}"


class Watch(models.Model):
    """The alerts that a user watches: those of a branch, those of a test, or one."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="watches")
    branch = models.ForeignKey(TrackedBranch, models.CASCADE, null=True, blank=True, related_name="+")
    test = models.CharField(max_length=64, blank=True)
    alert = models.ForeignKey(Alert, models.CASCADE, null=True, blank=True, related_name="+")

    class Meta:
        ordering = ["branch__name", "test", "alert_id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "branch", "test", "alert"], name="watch_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(branch__isnull=False, test="", alert=None)
                | (Q(branch=None, alert=None) & ~Q(test=""))
                | Q(branch=None, test="", alert__isnull=False),
                name="watch_of_one_thing",
            ),
        ]

    def __str__(self) -> str:
        if self.branch:
            return f"branch {self.branch.name}"
        return f"test {self.test}" if self.test else str(self.alert)

    @property
    def query(self) -> str:
        """The query of an address that names what is watched."""
        if self.branch:
            return urlencode({"branch": self.branch.name})
        return urlencode({"test": self.test} if self.test else {"alert": self.alert_id})

    @property
    def page(self) -> str:
        """The path of the page of what is watched."""
        if self.branch:
            return reverse("tracking:branch", args=[self.branch.name])
        return (
            reverse("reports:test", args=[self.test]) if self.test else reverse("tracking:alert", args=[self.alert_id])
        )
