# SPDX-License-Identifier: BSD-2-Clause
"""Names builds by their content, and records their results."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from django.conf import settings

from perfweb.builds.models import Build, BuildState
from perfweb.builds.sources import Sources

LONGEST_LOG = 256 * 1024


def build_key(source_sha256: str, options: Sequence[str]) -> str:
    """128 bits of the SHA-256 of sources and options; short enough for a directory name on a host."""
    content = json.dumps([source_sha256, list(options)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def source_store() -> Path:
    """Directory of packed sources, shared by all controllers of labs."""
    return Path(settings.SOURCE_STORE or Path(settings.PERFWEB_VAR) / "sources")


def named(sources: Sources, options: Sequence[str]) -> Build:
    """Return the build of `sources` with `options`; make it if it does not exist."""
    build, _ = Build.objects.get_or_create(
        key=build_key(sources.sha256, options),
        defaults={
            "source_sha256": sources.sha256,
            "revision": sources.revision,
            "committed": sources.committed,
            "options": list(options),
        },
    )
    return build


def foreign(revision: str, committed: datetime | None) -> Build:
    """Return the build of a revision that was made elsewhere, with no other known properties."""
    content = json.dumps(["foreign", revision, committed.isoformat() if committed else None])
    digest = hashlib.sha256(content.encode()).hexdigest()
    build, _ = Build.objects.get_or_create(
        key=digest[:32],
        defaults={
            "source_sha256": digest,
            "revision": revision,
            "committed": committed,
            "state": BuildState.FOREIGN,
        },
    )
    return build


def succeeded(build: Build, prefix: str, log: str, seconds: float | None) -> None:
    """Records the path of an installed build; log and time of an existing build are kept."""
    build.state = BuildState.READY
    build.prefix = prefix
    if seconds is not None:
        build.log, build.seconds = _storable(log), seconds
    build.save()


def failed(build: Build, log: str) -> None:
    build.state = BuildState.FAILED
    build.log = _storable(log)
    build.save()


def _storable(log: str) -> str:
    """Return the end of a log, without characters that PostgreSQL cannot store."""
    return log[-LONGEST_LOG:].encode("utf-8", "replace").decode("utf-8").replace("\0", "?")
