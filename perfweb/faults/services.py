# SPDX-License-Identifier: BSD-2-Clause
"""Loops over many items, in which an exception of one item never reaches another.

A failing item is logged, counted and shown on the health page with advice for the operator. The loop tries it again the
next time. Its fault is cleared when that works, or when it has not repeated for FORGOTTEN.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from django.db import Error, close_old_connections, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from perfweb.faults.models import Fault
from perfweb.plaintext import plain

log = logging.getLogger(__name__)
T = TypeVar("T")

FORGOTTEN = timedelta(hours=2)
"""Longer than the longest pause of a loop between two attempts at one item."""


@dataclass(frozen=True)
class Task:
    """A loop, and the advice for the operator about an item that fails in it.

    Faults of a `lasting` task stay until they are cleared, because it is not tried again by itself.
    """

    name: str
    advice: str
    lasting: bool = False


def for_each(task: Task, items: Iterable[T], step: Callable[[T], object], name: Callable[[T], str] = str) -> list[str]:
    """Call `step` with each item; an exception becomes a fault of this item, and the loop continues.

    Return the names of the failed items, for a command that ends with an error then.

    Raises django.db.Error if the database does not answer before the first item.
    """
    known = set(Fault.objects.filter(task=task.name).values_list("item", flat=True))
    return [
        name(item)
        for item in items
        if not attempt(task, name(item), lambda item=item: step(item), known)  # type: ignore[misc]
    ]


def attempt(task: Task, item: str, step: Callable[[], object], known: Iterable[str] | None = None) -> bool:
    """Call `step`; an exception becomes a fault of `item`. Return whether there was none.

    `known` are the items that have a fault, if the caller knows them.
    """
    try:
        step()
    except Exception as error:
        note(task, item, error)
        return False
    if known is None or short(item) in known:
        clear(task, item)
    return True


def note(task: Task, item: str, error: object) -> None:
    """Store a fault and log it. Never raises: without the database only the log has it."""
    log.error("%s: %s failed: %r", task.name, item, error, exc_info=error if isinstance(error, Exception) else None)
    now = timezone.now()
    try:
        with transaction.atomic():
            fault, made = Fault.objects.get_or_create(
                task=task.name, item=short(item), defaults={"first": now, "last": now}
            )
            fault.error = plain(error if isinstance(error, str) else repr(error))
            fault.advice, fault.lasting, fault.last = task.advice, task.lasting, now
            fault.times = F("times") + (0 if made else 1)
            fault.save()
    except Error as away:
        close_old_connections()
        log.warning("this fault is in the log only: %s", str(away).strip())


def clear(task: Task, item: str) -> None:
    """Delete a fault, because the item works again or is gone."""
    Fault.objects.filter(task=task.name, item=short(item)).delete()


def current() -> QuerySet[Fault]:
    """The faults that last or have repeated lately."""
    return Fault.objects.filter(Q(lasting=True) | Q(last__gt=timezone.now() - FORGOTTEN))


def forget() -> None:
    """Deletes the faults that are not current."""
    Fault.objects.exclude(pk__in=current().values("pk")).delete()


def short(item: str) -> str:
    """The name of an item in the database."""
    return plain(item)[:200]
