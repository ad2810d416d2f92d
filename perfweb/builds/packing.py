# SPDX-License-Identifier: BSD-2-Clause
"""Sources that the messenger packs, because a request may not take the half minute of a whole kernel.

Such sources are named at once, by their tree. Runs with them are queued, and start when the archive is there.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from celery import current_app
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from perfweb.builds import mirrors
from perfweb.builds.models import Packing
from perfweb.builds.patches import PatchError, read_series
from perfweb.builds.repositories import Bench, RepositoryError
from perfweb.builds.services import source_store
from perfweb.builds.sources import SourceError, Sources
from perfweb.faults import services as faults
from perfweb.plaintext import plain

TASK = "perfweb.builds.tasks.pack"
CLAIM = timedelta(minutes=5)
"""Time after which other sources of a killed messenger are packed by another one; longer than git may work."""
PACK = faults.Task("pack sources", "it is tried again after five minutes; read the messenger's log")


def packed(bench: Bench, tree: str, wanted: Packing, revision: str, committed: datetime | None = None) -> Sources:
    """Return the sources of a tree, packed from `bench` or, if that takes long, only named. Then `wanted` is how the
    messenger makes the tree. Raises PatchError and SourceError.
    """
    store = source_store()
    if not bench.kind.packed_later:
        return bench.pack(tree, store, revision, committed)
    sources = bench.named(tree, store, revision, committed)
    if not sources.archive.exists():
        _request(sources, wanted)
    return sources


def _request(sources: Sources, wanted: Packing) -> None:
    how = {"mirror": wanted.mirror, "commit": wanted.commit, "patch": wanted.patch, "patches": wanted.patches}
    Packing.objects.get_or_create(source_sha256=sources.sha256, defaults=how)
    Packing.objects.filter(source_sha256=sources.sha256).exclude(problem="").update(problem="", due=timezone.now())
    transaction.on_commit(_notify)


def _notify() -> None:
    """Notify the messenger. Without a broker nothing is lost, because beat calls the task, too."""
    try:
        current_app.send_task(TASK, retry=False)
    except (BrokerError, OSError):
        return


def problem(sha256: str) -> str:
    """Return why sources could not be packed; empty without a reason."""
    return Packing.objects.filter(source_sha256=sha256).values_list("problem", flat=True).first() or ""


def pack_all() -> None:
    """Pack all sources that are due."""
    due = Packing.objects.filter(problem="", due__lte=timezone.now()).order_by("pk").select_related("mirror")
    faults.for_each(PACK, list(due), _pack)


def _pack(wanted: Packing) -> None:
    if not Packing.objects.filter(pk=wanted.pk, due=wanted.due).update(due=timezone.now() + CLAIM):
        return  # another messenger packs it
    try:
        _archive(wanted)
    except (PatchError, RepositoryError, SourceError) as error:
        Packing.objects.filter(pk=wanted.pk).update(problem=plain(str(error)))
    else:
        Packing.objects.filter(pk=wanted.pk).delete()


def _archive(wanted: Packing) -> None:
    repository = mirrors.opened(wanted.mirror)
    with repository.bench() as bench:
        tree = wanted.commit
        if wanted.patches:
            stages = bench.apply(read_series(bytes(wanted.patch)), repository.commit(wanted.commit))
            tree = stages[wanted.patches - 1].tree
        bench.pack(tree, source_store(), "")
