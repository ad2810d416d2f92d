# SPDX-License-Identifier: BSD-2-Clause
"""Results: a run has boots, a boot has measurements, a measurement has samples and artefacts."""

from django.db import models
from django.db.models import F, Q

from perfweb.runs.models.run import Run, Variant, trigrams


class Topology(models.TextChoices):
    HOST_HOST = "host-host", "host-(host)"
    HOST_ROUTER_HOST = "host-router-host", "host-(router)-host"
    HOST_GIF_HOST = "host-gif-host", "host-gif-(host)"
    HOST_GRE_HOST = "host-gre-host", "host-gre-(host)"


class BootState(models.TextChoices):
    BOOTING = "booting", "booting"
    UP = "up", "up"
    STOPPED = "stopped", "stopped"
    FAILED = "failed", "failed to boot"
    CRASHED = "crashed", "crashed"
    INTERRUPTED = "interrupted", "interrupted"


class Boot(models.Model):
    """One booted variant, the replicate of the experiment. A repeated boot is another attempt."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="boots")
    variant = models.ForeignKey(Variant, models.CASCADE, related_name="boots")
    topology = models.CharField(max_length=24, choices=Topology)
    server = models.CharField(max_length=24, help_text="server program: netserver, iperf3, tcpconnect")
    position = models.PositiveIntegerField(help_text="position in the order of the run, from 0")
    attempt = models.PositiveSmallIntegerField(default=1)
    layout = models.PositiveSmallIntegerField(null=True, help_text="seed of the link order of the stack")
    seed = models.PositiveIntegerField(null=True, help_text="seed of the simulated machine; null if measured")
    sentinel = models.BooleanField(
        default=False, db_default=False, help_text="boot of the sentinel, which is in no verdict"
    )
    state = models.CharField(max_length=16, choices=BootState, default=BootState.BOOTING)
    effective_tunables = models.JSONField(default=dict, blank=True)
    command = models.TextField(blank=True, help_text="the exact command line of the boot")
    started = models.DateTimeField()
    ended = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["run_id", "position", "attempt"]
        indexes = [trigrams("error", "boot_by_error")]
        constraints = [
            models.UniqueConstraint(fields=["run", "position", "attempt"], name="boot_attempt_once"),
            models.CheckConstraint(condition=Q(topology__in=Topology.values), name="boot_topology_known"),
            models.CheckConstraint(condition=Q(state__in=BootState.values), name="boot_state_known"),
        ]

    def __str__(self) -> str:
        return f"boot {self.position} of run {self.run_id}"


class MeasurementState(models.TextChoices):
    OK = "ok", "ok"
    FAILED = "failed", "failed"
    VOID = "void", "void"


class Measurement(models.Model):
    """One test on one boot: one command, repeated for each sample."""

    boot = models.ForeignKey(Boot, models.CASCADE, related_name="measurements")
    test = models.CharField(max_length=64, help_text="name of the test: tcp.rr/host-host/ipv4")
    tool = models.CharField(max_length=24)
    metric = models.CharField(max_length=32, help_text="the compared metric of its samples")
    command = models.TextField(help_text="the exact command line, in shell syntax")
    pinning = models.JSONField(default=dict, help_text="CPUs of both ends: {'client': '0', 'server': '1'}")
    state = models.CharField(max_length=8, choices=MeasurementState)
    reason = models.TextField(blank=True, help_text="reason if it failed or is void")
    environment = models.JSONField(default=dict, blank=True, help_text="possible disturbance: controller_load")
    gauges = models.JSONField(default=list, blank=True, help_text="gauges of the host for each sample, by index")
    interim = models.JSONField(
        default=list, blank=True, db_default=[],
        help_text="reported throughput within each sample, by index: [[seconds, bits/s], …]",
    )  # fmt: skip
    voids = models.PositiveIntegerField(default=0, help_text="number of void samples")
    started = models.DateTimeField()
    seconds = models.FloatField(help_text="wall-clock time of all samples together")

    class Meta:
        ordering = ["boot_id", "pk"]
        indexes = [
            models.Index(fields=["test"], name="measurement_by_test"),
            trigrams("reason", "measurement_by_reason"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["boot", "test"], name="test_once_per_boot"),
            models.CheckConstraint(condition=Q(state__in=MeasurementState.values), name="measurement_state_known"),
            models.CheckConstraint(condition=Q(state="ok") | ~Q(reason=""), name="measurement_failure_has_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.test} on {self.boot}"


class Direction(models.TextChoices):
    HIGHER = "higher", "higher is better"
    LOWER = "lower", "lower is better"


class SampleQuerySet(models.QuerySet["Sample"]):
    def primary(self) -> "SampleQuerySet":
        """Primary samples: of the measurement's own metric; tools report others with it, such as latencies."""
        return self.filter(metric=F("measurement__metric"))

    def counted(self) -> "SampleQuerySet":
        """Primary samples that enter statistics."""
        return self.primary().valid()

    def valid(self) -> "SampleQuerySet":
        """Good samples of any metric that are not a sentinel's."""
        return self.good().filter(measurement__boot__sentinel=False)

    def good(self) -> "SampleQuerySet":
        """Samples of any metric that are not discarded, not void, and of a measurement that is ok."""
        return self.filter(discarded=False, void="", measurement__state=MeasurementState.OK)


class Sample(models.Model):
    """One number of a tool's output."""

    # No separate index, because that of `sample_once` begins with it.
    measurement = models.ForeignKey(Measurement, models.CASCADE, related_name="samples", db_index=False)
    index = models.PositiveIntegerField(help_text="index within the measurement, from 0, with warm-up")
    metric = models.CharField(max_length=32)
    value = models.FloatField()
    unit = models.CharField(max_length=24)
    direction = models.CharField(max_length=8, choices=Direction)
    discarded = models.BooleanField(default=False, help_text="warm-up: shown, but not in statistics")
    seconds = models.FloatField(help_text="wall-clock time of the tool")
    void = models.TextField(
        default="", db_default="", blank=True, help_text="reason if a validity gate fired; then not in statistics"
    )

    objects = SampleQuerySet.as_manager()

    class Meta:
        ordering = ["measurement_id", "index", "metric"]
        constraints = [
            models.UniqueConstraint(fields=["measurement", "index", "metric"], name="sample_once"),
            models.CheckConstraint(condition=Q(direction__in=Direction.values), name="sample_direction_known"),
            # A tool without a result is a failed measurement, so NaN and infinity never get here.
            models.CheckConstraint(
                condition=Q(value__gt=float("-inf")) & Q(value__lt=float("inf")), name="sample_is_finite"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric} {self.value} {self.unit}"


class Summary(models.Model):
    """A summary of the counted samples of one test on one variant of a run, for lists and timelines.

    Derived from the samples (perfweb.runs.summaries) when a run ends, and can be computed again at any time. The
    columns of a timeline's filters and order are repeated here, so that its cost does not grow with the number of
    samples or of other tests. So are the run's verdict on the variant against its baseline, and the version of the
    statistics.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="summaries")
    variant = models.ForeignKey(Variant, models.CASCADE, related_name="summaries")
    test = models.CharField(max_length=64)
    series = models.CharField(max_length=180, help_text="testbed/plan/variant: a line of a timeline")
    at = models.DateTimeField(help_text="time of the built commit, or of the run without one")
    revision = models.CharField(max_length=80, blank=True, help_text="revision of the build")
    environment = models.CharField(max_length=32, blank=True, help_text="digest of the facts about the run's hosts")
    unit = models.CharField(max_length=24)
    direction = models.CharField(max_length=8, choices=Direction)
    n = models.PositiveIntegerField()
    mean = models.FloatField()
    deviation = models.FloatField(null=True, help_text="sample standard deviation; empty for a single sample")
    minimum = models.FloatField()
    maximum = models.FloatField()
    boots_differ = models.BooleanField(
        default=False, help_text=("whether boots differ by more than their samples scatter")
    )
    verdict = models.CharField(max_length=16, blank=True, help_text="empty for the baseline itself")
    lack = models.CharField(max_length=32, blank=True, help_text="why there is no better verdict")
    change = models.FloatField(null=True, help_text="change from the baseline in percent; empty without an interval")
    change_low = models.FloatField(null=True)
    change_high = models.FloatField(null=True)
    rules = models.CharField(max_length=16, blank=True, help_text="digest of the statistics' version")

    class Meta:
        ordering = ["run_id", "variant_id", "test"]
        verbose_name_plural = "summaries"
        indexes = [
            models.Index(fields=["test", "at"], name="summary_by_test_and_time"),
            models.Index(fields=["test", "run"], name="summary_by_test_and_run"),
            models.Index(fields=["series", "test", "run"], name="summary_by_line_and_run"),
        ]
        constraints = [models.UniqueConstraint(fields=["variant", "test"], name="summary_once_per_variant_and_test")]

    def __str__(self) -> str:
        return f"{self.test} of {self.series}: {self.mean} {self.unit}"

    @property
    def relative_deviation(self) -> float | None:
        """The deviation in percent of the mean, None for a single sample or a mean of zero."""
        return 100 * self.deviation / abs(self.mean) if self.deviation is not None and self.mean else None


class Calibration(models.Model):
    """The result of an A/A run for one test on its testbed.

    Derived from the samples (perfweb.runs.calibration) when the run ends, and can be computed again at any time.
    Deviations are in percent of the mean; `alarms` has for each rule of perfweb.stats.design.falsealarms the share of
    `comparisons` in which it reported a difference, and the width of its intervals to either side in percent.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="calibrations")
    test = models.CharField(max_length=64)
    boots = models.PositiveIntegerField(help_text="number of samples of all equal variants")
    samples = models.PositiveIntegerField(help_text="deviation on all boots together")
    boot_deviation = models.FloatField(help_text="between boots, without that of the samples")
    layout_deviation = models.FloatField(
        null=True, help_text=("between layouts of the same code, if there were several")
    )
    sample_deviation = models.FloatField(help_text="between the samples of a boot")
    boot_seconds = models.FloatField(help_text="seconds of a boot besides its samples")
    confidence = models.FloatField(help_text="confidence of the rules in percent")
    comparisons = models.PositiveIntegerField(help_text="number of experiments for the false positive rates")
    disjoint = models.PositiveIntegerField(help_text="number of experiments without common boots")
    blocks = models.PositiveIntegerField(help_text="boots of each side in an experiment")
    alarms = models.JSONField(default=dict, help_text="{rule: {'share': 0.05, 'width': 1.2}}")

    class Meta:
        ordering = ["-run_id", "test"]
        indexes = [models.Index(fields=["test", "-run"], name="calibration_by_test_and_run")]
        constraints = [models.UniqueConstraint(fields=["run", "test"], name="calibration_once_per_run_and_test")]

    def __str__(self) -> str:
        return f"{self.test} in run {self.run_id}: boots ±{self.boot_deviation:.2f} %"


class ArtefactKind(models.TextChoices):
    TOOL_OUTPUT = "tool-output", "tool output"
    BOOT_LOG = "boot-log", "boot log"
    STOP_LOG = "stop-log", "end of the boot's log"
    TUNABLES = "tunables", "effective tunables"
    COUNTERS = "counters", "counters"
    BUILD_LOG = "build-log", "build log"
    PLAY_LOG = "play-log", "Ansible log"
    PATCH = "patch", "patch"


class Artefact(models.Model):
    """A text of a run, byte for byte.

    Stored in the database: it then appears in the same transaction as the row it belongs to, web server and worker
    need no common file system, and one backup has everything.  Texts are small (PostgreSQL compresses them); queries
    that do not show them should `defer("content")`.
    """

    CONTENT_TYPE = "text/plain; charset=utf-8"  # a browser must never interpret the output of a tool

    run = models.ForeignKey(Run, models.CASCADE, related_name="artefacts")
    boot = models.ForeignKey(Boot, models.CASCADE, null=True, blank=True, related_name="artefacts")
    measurement = models.ForeignKey(Measurement, models.CASCADE, null=True, blank=True, related_name="artefacts")
    kind = models.CharField(max_length=16, choices=ArtefactKind)
    name = models.CharField(max_length=120, help_text="unique within the run; its path in the archive of the run")
    content = models.BinaryField()
    size = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["run_id", "name"]
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="artefact_name_once_per_run"),
            models.CheckConstraint(condition=Q(kind__in=ArtefactKind.values), name="artefact_kind_known"),
            models.CheckConstraint(
                condition=Q(name__regex=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$") & ~Q(name__contains=".."),
                name="artefact_name_is_plain",
            ),
        ]

    def __str__(self) -> str:
        return self.name
