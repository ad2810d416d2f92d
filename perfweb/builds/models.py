# SPDX-License-Identifier: BSD-2-Clause
"""A build is made once for each content: the same sources and options have the same key."""

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models.functions import Upper
from django.utils import timezone

from perfweb.builds.kinds import KINDS, STACK


class BuildState(models.TextChoices):
    PENDING = "pending", "pending"
    READY = "ready", "ready"
    FAILED = "failed", "failed"
    FOREIGN = "foreign", "made elsewhere"


class Build(models.Model):
    key = models.CharField(max_length=32, unique=True, help_text="perfweb.builds.services.build_key")
    source_sha256 = models.CharField(max_length=64)
    revision = models.CharField(max_length=80, blank=True, help_text="`git describe` of the sources, if known")
    committed = models.DateTimeField(null=True, blank=True, help_text="time of the revision's commit, if known")
    options = models.JSONField(default=list, help_text="meson options, in order")
    state = models.CharField(max_length=8, choices=BuildState, default=BuildState.PENDING)
    prefix = models.TextField(blank=True, help_text="path of the installed build on the device under test")
    log = models.TextField(blank=True)
    seconds = models.FloatField(null=True, blank=True, help_text="duration of the build; empty if not yet built")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created"]
        indexes = [GinIndex(OpClass(Upper("revision"), name="gin_trgm_ops"), name="build_by_revision")]
        constraints = [
            models.CheckConstraint(condition=models.Q(key__regex=r"^[0-9a-f]{32}$"), name="build_key_is_hash"),
            models.CheckConstraint(condition=models.Q(state__in=BuildState.values), name="build_state_known"),
            models.CheckConstraint(
                condition=~models.Q(state=BuildState.READY) | ~models.Q(prefix=""), name="ready_build_has_prefix"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key[:12]} {self.state}"


class Mirror(models.Model):
    """A git repository elsewhere whose commits can be measured; the service fetches them into a mirror."""

    name = models.SlugField(max_length=64, unique=True)
    url = models.CharField(max_length=500, help_text="https:// without a password, or an absolute path")
    branch = models.CharField(max_length=100, default="main", help_text="the usual base of patches")
    kind = models.CharField(
        max_length=8, choices=[(kind.name, kind.title) for kind in KINDS.values()], default=STACK.name,
        help_text="what its sources are, which decides what a patch may change",
    )  # fmt: skip
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.CheckConstraint(condition=models.Q(kind__in=list(KINDS)), name="mirror_kind_known")]

    def __str__(self) -> str:
        return self.name


class Packing(models.Model):
    """Sources that the messenger still has to pack: a commit of a mirror, with the first `patches` of a series."""

    source_sha256 = models.CharField(max_length=64, unique=True, help_text="name of the archive")
    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="+")
    commit = models.CharField(max_length=40)
    patch = models.BinaryField(default=b"")
    patches = models.PositiveSmallIntegerField(default=0, help_text="0 is the commit itself")
    problem = models.TextField(blank=True, help_text="why they cannot be packed")
    due = models.DateTimeField(default=timezone.now, help_text="when a messenger packs them, or tries again")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.mirror} {self.commit[:12]}{f' + {self.patches}' if self.patches else ''}"
