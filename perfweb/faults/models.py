# SPDX-License-Identifier: BSD-2-Clause
"""Failures of background loops, for the health page and the operator."""

from django.db import models


class Fault(models.Model):
    """An item of a loop that raised an exception; the loop went on with the other items.

    Only perfweb.faults.services changes one.
    """

    task = models.CharField(max_length=64, help_text="action on the item: recover, deliver …")
    item = models.CharField(max_length=200, help_text="which item")
    error = models.TextField(help_text="the newest exception; its traceback is in the log")
    advice = models.TextField(help_text="advice for the operator")
    lasting = models.BooleanField(default=False, help_text="stays until it is cleared, even if it does not repeat")
    times = models.PositiveIntegerField(default=1)
    first = models.DateTimeField()
    last = models.DateTimeField()

    class Meta:
        ordering = ["task", "item"]
        constraints = [models.UniqueConstraint(fields=["task", "item"], name="fault_once_per_item")]

    def __str__(self) -> str:
        times = f", {self.times} times since {self.first:%Y-%m-%d %H:%M} UTC" if self.times > 1 else ""
        return f"{self.task}: {self.item}{times}"
