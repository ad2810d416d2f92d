# SPDX-License-Identifier: BSD-2-Clause
"""Testbeds, their hosts, and leases of them."""

from django.db import models

from perfweb.lab.origins import Origin


def queue_of(lab: str) -> str:
    """The queue of the worker that drives the testbeds of a lab; Celery's default queue for the service's own lab."""
    return f"lab.{lab}" if lab else "celery"


class Testbed(models.Model):
    """Three hosts wired left, dut, right in a row; the Ansible inventory has their addresses.

    A testbed without an inventory is elsewhere, and only its results are known. A testbed that simulates has a single
    host, dut, on which the stack runs on the simulated machine; nothing is measured there. A testbed of samples was
    loaded with all its results (perfweb.samples), and never takes a run.
    """

    name = models.SlugField(unique=True)
    inventory = models.TextField(help_text="path of the Ansible inventory on the lab controller")
    origin = models.CharField(
        max_length=9, choices=Origin, default=Origin.MEASURED, help_text="how its results come about"
    )
    sample = models.CharField(
        max_length=200, blank=True, default="", help_text="where its results come from, if they are samples"
    )
    lab = models.SlugField(
        max_length=32, blank=True, help_text="the lab whose own worker drives it; empty for the service's worker"
    )
    command_line_words = models.JSONField(
        null=True,
        blank=True,
        help_text="kernel parameters that plans may add to the command line of dut; null for the default list",
    )
    created = models.DateTimeField(auto_now_add=True)
    faults = models.PositiveIntegerField(
        default=0, help_text=("faults of the testbed in a row since a run was prepared")
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=models.Q(origin__in=Origin.values), name="testbed_origin_known")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def queue(self) -> str:
        """The Celery queue of its lab's worker."""
        return queue_of(self.lab)

    @property
    def label(self) -> str:
        """Its name beside results, which marks samples and those that were not measured."""
        marks = list(filter(None, ["sample" if self.sample else "", Origin(self.origin).mark]))
        return f"{self.name} ({', '.join(marks)})" if marks else self.name


class Role(models.TextChoices):
    LEFT = "left", "left (runs the client)"
    DUT = "dut", "device under test"
    RIGHT = "right", "right (behind the router)"


class Host(models.Model):
    """One machine of a testbed, as its inventory names it."""

    testbed = models.ForeignKey(Testbed, models.CASCADE, related_name="hosts")
    role = models.CharField(max_length=8, choices=Role)
    name = models.CharField(max_length=253)
    address = models.CharField(max_length=253, help_text="management address, by which Ansible reaches it")

    class Meta:
        ordering = ["testbed", "role"]
        constraints = [
            models.UniqueConstraint(fields=["testbed", "role"], name="one_host_per_role"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="host_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.role})"


class Lease(models.Model):
    """A testbed belongs to one holder until the lease is released or expires; the holder renews it as a heartbeat."""

    testbed = models.ForeignKey(Testbed, models.CASCADE, related_name="leases")
    holder = models.CharField(max_length=64, help_text="the holder in words: 'run 12'")
    account = models.CharField(
        max_length=150, blank=True, help_text=("the account of the holder, by which testbed time is shared")
    )
    taken = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    worker = models.CharField(max_length=255, blank=True, help_text="the Celery worker of the holder")
    recalled = models.BooleanField(default=False, help_text="the holder must clean up and release the testbed")
    problem = models.TextField(
        blank=True, help_text="why the hosts could not be restored; the testbed is out of service until they are"
    )
    released = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-taken"]
        indexes = [models.Index(fields=["released"], name="lease_by_end")]
        constraints = [
            models.UniqueConstraint(
                fields=["testbed"], condition=models.Q(released__isnull=True), name="one_lease_per_testbed"
            )
        ]

    def __str__(self) -> str:
        return f"{self.testbed} held by {self.holder}"


class OutageKind(models.TextChoices):
    MAINTENANCE = "maintenance", "maintenance"
    QUARANTINE = "quarantine", "quarantine"


class Outage(models.Model):
    """A period in which a testbed takes no runs, with its author, its reason, and the user who ended it."""

    testbed = models.ForeignKey(Testbed, models.CASCADE, related_name="outages")
    kind = models.CharField(max_length=12, choices=OutageKind)
    why = models.TextField()
    by = models.CharField(max_length=150, help_text="an account, or perfweb itself")
    began = models.DateTimeField(auto_now_add=True)
    ended = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["-began"]
        constraints = [
            models.CheckConstraint(condition=models.Q(kind__in=OutageKind.values), name="outage_kind_known"),
            models.UniqueConstraint(
                fields=["testbed", "kind"], condition=models.Q(ended__isnull=True), name="one_outage_of_a_kind"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.by} since {self.began:%Y-%m-%d %H:%M} UTC: {self.why}"


class HealthCheck(models.Model):
    """The result of a health check of a testbed's hosts before a run."""

    testbed = models.ForeignKey(Testbed, models.CASCADE, related_name="checks")
    at = models.DateTimeField(auto_now_add=True)
    holder = models.CharField(max_length=64, help_text="the reason of the check: 'run 12'")
    facts = models.JSONField(default=dict, help_text="by host: free_mb by directory, load of the last minute")
    problems = models.JSONField(default=list, help_text="problems in words; empty if all hosts are fit")

    class Meta:
        ordering = ["-at"]
        indexes = [models.Index(fields=["testbed", "-at"], name="check_by_testbed_and_time")]

    def __str__(self) -> str:
        return f"{self.testbed} is " + ("; ".join(self.problems) or "fit")
