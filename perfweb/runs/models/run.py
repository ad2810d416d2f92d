# SPDX-License-Identifier: BSD-2-Clause
"""Plans, their runs with variants, and the state of a run."""

from typing import Any

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.functions import Cast, Upper

from perfweb.builds.models import Build, Packing
from perfweb.lab.models import Lease, Role, Testbed


def trigrams(field: str, name: str, **options: Any) -> GinIndex:
    """A trigram index, with which `icontains` finds parts of a text."""
    return GinIndex(OpClass(Upper(field), name="gin_trgm_ops"), name=name, **options)


class Plan(models.Model):
    """One text of a plan. Plans never change: another text is another plan, so a run always shows its own."""

    name = models.SlugField(max_length=64)
    title = models.CharField(max_length=200)
    text = models.TextField(help_text="the YAML as submitted")
    sha256 = models.CharField(max_length=64, unique=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "created"]
        indexes = [trigrams("title", "plan_by_title"), trigrams("text", "plan_by_text")]

    def __str__(self) -> str:
        return self.name


class RunState(models.TextChoices):
    QUEUED = "queued", "queued"
    LEASED = "leased", "leased"
    PREPARING = "preparing", "preparing"
    BUILDING = "building", "building"
    RUNNING = "running", "running"
    RESTORING = "restoring", "restoring"
    PAUSED = "paused", "paused"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"
    INTERRUPTED = "interrupted", "interrupted"


FINAL_STATES = frozenset({RunState.DONE, RunState.FAILED, RunState.CANCELLED, RunState.INTERRUPTED})
"""Final states; an interrupted or failed run can be queued again."""
OPEN_STATES = frozenset(RunState) - FINAL_STATES
ACTIVE_STATES = OPEN_STATES - {RunState.QUEUED, RunState.PAUSED}
"""States in which a worker works on the run, and the run holds its testbed."""


class ImportQuerySet(models.QuerySet["Import"]):
    def newest_runs(self, imports: int) -> "models.QuerySet[Import, int | None]":
        """Numbers of the newest run of each of the newest imports; an import can have thousands of runs."""
        runs = Run.objects.filter(imported=OuterRef("pk")).order_by("-number").values("pk")[:1]
        return self.order_by("-pk").values_list(Subquery(runs), flat=True)[:imports]


class Import(models.Model):
    """Files with results from elsewhere, read once; their runs refer to them."""

    format = models.CharField(max_length=24, help_text="format: csv, netperf …")
    origin = models.TextField(help_text="comment about the origin of the results")
    options = models.JSONField(default=dict, help_text="options of reading: other options make another import")
    sha256 = models.CharField(max_length=64, help_text="of the file, or of the sums and names of several")
    reading = models.CharField(max_length=64, help_text="SHA-256 of the options")
    imported_by = models.CharField(max_length=150, blank=True)
    created = models.DateTimeField(auto_now_add=True)

    objects = ImportQuerySet.as_manager()

    class Meta:
        ordering = ["-created"]
        constraints = [models.UniqueConstraint(fields=["sha256", "format", "reading"], name="read_once_in_one_way")]

    def __str__(self) -> str:
        return f"{self.format} from {self.origin}"


class Priority(models.IntegerChoices):
    LOW = -1, "low"
    NORMAL = 0, "normal"
    HIGH = 1, "high"


class Run(models.Model):
    """A plan on a leased testbed, or results from elsewhere.  Only perfweb.runs.states changes `state`."""

    number = models.BigAutoField(primary_key=True)
    plan = models.ForeignKey(Plan, models.PROTECT, related_name="runs")
    testbed = models.ForeignKey(Testbed, models.PROTECT, related_name="runs")
    lease = models.ForeignKey(Lease, models.SET_NULL, null=True, blank=True, related_name="+")
    state = models.CharField(max_length=16, choices=RunState, default=RunState.QUEUED)
    reason = models.TextField(blank=True, help_text="reason of the state, if it needs one")
    seed = models.PositiveIntegerField(default=0, help_text="seed of the random order, by which a user can repeat it")
    requested_by = models.CharField(max_length=150, blank=True)
    priority = models.SmallIntegerField(choices=Priority, default=Priority.NORMAL, help_text="priority in the queue")
    imported = models.ForeignKey(Import, models.PROTECT, null=True, blank=True, related_name="runs")
    cancel_requested = models.BooleanField(default=False)
    created = models.DateTimeField(auto_now_add=True)
    started = models.DateTimeField(null=True, blank=True)
    ended = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-number"]
        indexes = [
            models.Index(fields=["state"], name="run_by_state"),
            models.Index(fields=["testbed", "number"], name="run_by_testbed"),
            models.Index(fields=["created"], name="run_by_time"),
            trigrams("reason", "run_by_reason"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="run_state_known"),
            models.CheckConstraint(condition=Q(priority__in=Priority.values), name="run_priority_known"),
            models.CheckConstraint(
                condition=Q(ended__isnull=True) | Q(started__isnull=True) | Q(ended__gte=F("started")),
                name="run_ends_after_start",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.number}"

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.state in FINAL_STATES

    @property
    def is_active(self) -> bool:
        """Whether a worker works on the run; a queued or a paused one waits."""
        return self.state in ACTIVE_STATES

    @property
    def is_being_packed(self) -> bool:
        """Whether the run is queued, and its sources are not packed yet."""
        queued = Run.objects.filter(pk=self.pk, state=RunState.QUEUED)
        return self.state == RunState.QUEUED and queued.filter(being_packed()).exists()


def being_packed() -> Q:
    """Return the condition on runs that a messenger still packs some of their sources."""
    unpacked = Packing.objects.filter(problem="").values("source_sha256")
    return Q(pk__in=Run.objects.filter(variants__build__source_sha256__in=unpacked).values("pk"))


class RunTransition(models.Model):
    """One step of a run's state machine; together they are its history."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="transitions")
    at = models.DateTimeField(auto_now_add=True)
    from_state = models.CharField(max_length=16, choices=RunState, blank=True, help_text="empty when the run was made")
    to_state = models.CharField(max_length=16, choices=RunState)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["run_id", "pk"]

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"


class Loss(models.Model):
    """A worker that died during a run. A step at which a run lost two workers is not tried again."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="losses")
    lease = models.OneToOneField(Lease, models.CASCADE, related_name="+")
    step = models.CharField(max_length=24, help_text="state of the run, or 'boot 3' by its position")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["run_id", "pk"]
        verbose_name_plural = "losses"

    def __str__(self) -> str:
        return f"{self.run} lost its worker at {self.step}"


class Target(models.TextChoices):
    STACK = "stack", "reference stack"
    LINUX = "linux", "Linux kernel"
    SIM = "sim", "reference stack, simulated"
    OTHER = "other", "another system"


class Variant(models.Model):
    """A variant that a run compares: a target, its build, and its tunables."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="variants")
    name = models.SlugField(max_length=64)
    position = models.PositiveSmallIntegerField(help_text="position in the plan, from 0")
    baseline = models.BooleanField(default=False)
    target = models.CharField(max_length=8, choices=Target)
    build_options = models.JSONField(default=list, blank=True)
    tunables = models.JSONField(default=dict, blank=True)
    knobs = models.GeneratedField(
        expression=Cast("tunables", models.TextField()),
        output_field=models.TextField(),
        db_persist=True,
        help_text="the tunables as text, for the search",
    )
    build = models.ForeignKey(Build, models.PROTECT, null=True, blank=True, related_name="variants")

    class Meta:
        ordering = ["run_id", "position"]
        indexes = [trigrams("name", "variant_by_name"), trigrams("knobs", "variant_by_knobs")]
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="variant_name_once_per_run"),
            models.UniqueConstraint(fields=["run", "position"], name="variant_position_once_per_run"),
            models.UniqueConstraint(fields=["run"], condition=Q(baseline=True), name="one_baseline_per_run"),
            models.CheckConstraint(condition=Q(target__in=Target.values), name="variant_target_known"),
        ]

    def __str__(self) -> str:
        return self.name


class HostFacts(models.Model):
    """The facts about a host when the run used it: kernel, CPU, mitigations, congestion control, tool versions."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="host_facts")
    role = models.CharField(max_length=8, choices=Role)
    name = models.CharField(max_length=253)
    facts = models.JSONField(default=dict)

    class Meta:
        ordering = ["run_id", "role"]
        indexes = [trigrams("name", "host_facts_by_name")]
        verbose_name_plural = "host facts"
        constraints = [models.UniqueConstraint(fields=["run", "role"], name="facts_once_per_host")]

    def __str__(self) -> str:
        return f"{self.name} in run {self.run_id}"
