# SPDX-License-Identifier: BSD-2-Clause
"""Testbeds, their hosts, and leases of them."""

from django.db import models


class Testbed(models.Model):
    """Three hosts wired left, dut, right in a row; the Ansible inventory says how to reach them.

    Without an inventory it is somewhere else, and only results from there are known.
    """

    name = models.SlugField(unique=True)
    inventory = models.TextField(help_text="path of the Ansible inventory on the lab controller")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


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
    holder = models.CharField(max_length=64, help_text="who holds it, for people: 'run 12'")
    taken = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    worker = models.CharField(max_length=255, blank=True, help_text="the Celery worker that works for the holder")
    recalled = models.BooleanField(default=False, help_text="the holder shall clean up and give the testbed back")
    problem = models.TextField(
        blank=True, help_text="why the hosts could not be restored: the testbed is out of service until they are"
    )
    released = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-taken"]
        constraints = [
            models.UniqueConstraint(
                fields=["testbed"], condition=models.Q(released__isnull=True), name="one_lease_per_testbed"
            )
        ]

    def __str__(self) -> str:
        return f"{self.testbed} held by {self.holder}"
