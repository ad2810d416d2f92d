# SPDX-License-Identifier: BSD-2-Clause
"""Replaces old raw output by a note, so that the database does not grow without limit; samples and verdicts stay.

A line with length and hash replaces each text. Pages, archives and the API show it under the old name, and a user with
a copy can verify it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from perfweb.faults.services import Task, for_each
from perfweb.runs.models import FINAL_STATES, Artefact, ArtefactKind
from perfweb.tracking import states
from perfweb.tracking.models import Alert

KINDS = (
    ArtefactKind.TOOL_OUTPUT,
    ArtefactKind.BOOT_LOG,
    ArtefactKind.STOP_LOG,
    ArtefactKind.BUILD_LOG,
    ArtefactKind.PLAY_LOG,
)
"""Kinds of texts that are deleted.  Tunables, counters and patches are kept, because they explain verdicts."""
SMALL = 1000
"""Max bytes of a text that is kept, because a note would be no smaller."""
AT_ONCE = 500
"""Texts of a transaction."""
MOST = 10_000
"""Texts of a call, which other tasks wait for."""
THIN = Task("give up a raw output", "it is kept and tried again; read the messenger's log")


@dataclass(frozen=True)
class Thinned:
    """The number of deleted texts and of their bytes; `failed` names those that could not be deleted."""

    texts: int = 0
    size: int = 0
    failed: tuple[str, ...] = ()


def thin(days: int, now: datetime | None = None, most: int | None = None) -> Thinned:
    """Delete the raw outputs of runs that ended so many days ago, except those that an open alert depends on; about
    `most` of them.

    A second call continues after an interrupted one, and finds nothing more after a complete one.
    """
    now = now or timezone.now()
    sizes: list[int] = []
    failed: list[str] = []
    old, last = too_old(days, now), 0
    while (most is None or len(sizes) < most) and (
        keys := list(old.filter(pk__gt=last).values_list("pk", flat=True)[:AT_ONCE])
    ):
        last = keys[-1]
        try:
            sizes.extend(_replace_texts(keys, now))
        except (OperationalError, InterfaceError):
            raise
        except Exception:  # each text alone, so that a failure does not stop the others
            failed += for_each(THIN, keys, lambda key: sizes.extend(_replace_texts([key], now)), _name)
    return Thinned(len(sizes), sum(sizes), tuple(failed))


def too_old(days: int, now: datetime) -> QuerySet[Artefact]:
    """Return the texts to delete."""
    open_alerts = Alert.objects.filter(state__in=states.OPEN)
    cited = Q(run__check_of__alert__in=open_alerts)
    for end in ("since", "until", "culprit"):
        cited |= Q(run__tracked_commits__in=open_alerts.filter(**{f"{end}__isnull": False}).values(end))
    old = Artefact.objects.filter(
        kind__in=KINDS, size__gt=SMALL, run__state__in=FINAL_STATES, run__ended__lt=now - timedelta(days=days)
    )
    kept = Artefact.objects.filter(cited).values("run")
    return old.exclude(run__in=kept).order_by("pk")


def _name(key: int) -> str:
    return f"text {key}"


@transaction.atomic
def _replace_texts(keys: Sequence[int], now: datetime) -> list[int]:
    """Replace texts by notes; return the former sizes."""
    rows = list(Artefact.objects.select_for_update().defer("content").filter(pk__in=keys))
    sizes = [row.size for row in rows]
    for row in rows:
        _put_note(row, now)
    Artefact.objects.bulk_update(rows, ["content", "size", "sha256"])
    return sizes


def _put_note(row: Artefact, now: datetime) -> None:
    note = f"Given up on {now:%Y-%m-%d}: {row.size} bytes with the SHA-256 {row.sha256}. The samples are kept.\n"
    row.content = note.encode()
    row.size, row.sha256 = len(row.content), hashlib.sha256(row.content).hexdigest()
