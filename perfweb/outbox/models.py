# SPDX-License-Identifier: BSD-2-Clause
"""Letters: outgoing messages with their recipient and delivery state."""

from django.db import models


class Letter(models.Model):
    """An outgoing message.  Only perfweb.outbox.services changes one.

    A letter is identified by its key: new content replaces the old one, for example of an edited comment.
    """

    channel = models.CharField(max_length=80, help_text="KIND:NAME; OUTBOX_SENDERS maps the kind to its sender")
    key = models.CharField(max_length=200)
    content = models.JSONField()
    version = models.PositiveIntegerField(default=1, help_text="of the content")
    reference = models.CharField(max_length=500, blank=True, help_text="identifier of the message at the recipient")
    due = models.DateTimeField(null=True, blank=True, help_text="when to try; empty if nothing is left to send")
    attempts = models.PositiveIntegerField(default=0, help_text="failed attempts, with the current one")
    since = models.DateTimeField(help_text="time of this content")
    sent = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True, help_text="error of the last attempt")

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["due"], name="letter_by_due")]
        constraints = [models.UniqueConstraint(fields=["channel", "key"], name="letter_once")]

    def __str__(self) -> str:
        return f"{self.channel} {self.key}"
