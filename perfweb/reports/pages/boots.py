# SPDX-License-Identifier: BSD-2-Clause
"""The difference of two boots of a run: their logs and tunables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition, require_safe

from perfweb.parameters import ParameterError, number_in, possible
from perfweb.reports.pages.runs import find_run
from perfweb.runs.models import Artefact, ArtefactKind, Boot
from perfweb.submissions.difftext import marked
from perfweb.verdicts.tags import tag_of_page

COMPARED = (ArtefactKind.TUNABLES, ArtefactKind.BOOT_LOG, ArtefactKind.STOP_LOG)

_TIMESTAMP = re.compile(r"^(?:<\d{1,3}>)?\[ *\d{1,9}\.\d{1,9}\] ", re.ASCII)
"""The time since boot with which Linux begins a line of its log; no two boots have the same."""


@dataclass(frozen=True)
class TextDifference:
    """A text of both boots, by its name: the marked lines that differ, empty for the same text."""

    name: str
    lines: SafeString


@require_safe
@cache_control(no_cache=True)
@condition(etag_func=tag_of_page)
def boots(request: HttpRequest, number: int) -> HttpResponse:
    """Show how the logs and tunables of two boots differ, `?a=` and `?b=` by position; by default the first boot and
    the first one of another variant.
    """
    run = find_run(number)
    every = list(run.boots.select_related("variant").order_by("position", "attempt"))
    a, b = _chosen(request, every)
    context = {
        "run": run,
        "boots": every,
        "sides": [("a", "From", a), ("b", "to", b)],
        "a": a,
        "b": b,
        "texts": _differences(a, b) if a and b else [],
    }
    return render(request, "reports/boots.html", context)


def _chosen(request: HttpRequest, every: Sequence[Boot]) -> tuple[Boot | None, Boot | None]:
    """Return the two boots that the address selects, None where the run has too few. Raises ParameterError."""
    by_position = {boot.position: boot for boot in every}  # of several attempts the last one

    def wanted(name: str) -> Boot | None:
        position = number_in(request, name)
        if position is None:
            return None
        if position not in by_position:
            raise ParameterError(name, f"There is no boot {position}. {possible(list(map(str, by_position)))}")
        return by_position[position]

    first, second = wanted("a"), wanted("b")
    boots = list(by_position.values())
    first = first or next((boot for boot in boots if boot != second), None)
    others = [boot for boot in boots if boot != first]
    fresh = (boot for boot in others if first and boot.variant_id != first.variant_id)
    return first, second or next(fresh, None) or next(iter(others), None)


def _differences(a: Boot, b: Boot) -> list[TextDifference]:
    texts: dict[str, dict[int, str]] = {}
    for artefact in Artefact.objects.filter(boot__in=[a, b], kind__in=COMPARED).order_by("name"):
        assert artefact.boot_id is not None  # noqa: S101 (it was selected by its boot)
        name = artefact.name.rpartition("/")[2]
        texts.setdefault(name, {})[artefact.boot_id] = bytes(artefact.content).decode("utf-8", "replace")
    return [difference(name, members.get(a.pk, ""), members.get(b.pk, "")) for name, members in sorted(texts.items())]


def difference(name: str, a: str, b: str) -> TextDifference:
    """Return the lines that only one of two texts has, in their order, without the times in kernel logs. Lines that
    changed their place only are no difference. The time is linear in the length of the texts.
    """
    first, second = ([_TIMESTAMP.sub("", line) for line in text.splitlines()] for text in (a, b))
    lines = list(_merged(_only(first, second), _only(second, first)))
    removed = sum(line.startswith("-") for line in lines)
    head = [f"@@ -1,{removed} +1,{len(lines) - removed} @@"] if lines else []
    return TextDifference(name, marked("\n".join([*head, *lines])))


def _only(lines: Sequence[str], others: Sequence[str]) -> list[str | None]:
    """Return each line, None where the other text has it, too."""
    left = Counter(others)
    found: list[str | None] = []
    for line in lines:
        left[line] -= 1
        found.append(line if left[line] < 0 else None)
    return found


def _merged(a: Sequence[str | None], b: Sequence[str | None]) -> Iterator[str]:
    """Yield the lines of both texts between each two that are in both."""
    for first, second in zip_longest(_between(a), _between(b), fillvalue=()):
        yield from (f"-{line}" for line in first)
        yield from (f"+{line}" for line in second)


def _between(lines: Sequence[str | None]) -> Iterator[list[str]]:
    part: list[str] = []
    for line in lines:
        if line is None:
            yield part
            part = []
        else:
            part.append(line)
    yield part
