# SPDX-License-Identifier: BSD-2-Clause
"""The result of a check: a run that measured two commits alternately, boot by boot, so that they differ in nothing
else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import transaction

from perfweb.runs.judging import SampleSet, joined, judged, load_of, samples_of
from perfweb.runs.models import Run, Variant
from perfweb.stats.comparison import Comparison, among
from perfweb.stats.ratio import Change
from perfweb.tracking import states
from perfweb.tracking.measuring import BY, before_name
from perfweb.tracking.models import Alert, Movement
from perfweb.verdicts.numbers import percent
from perfweb.verdicts.wording import change_words

FIRST, LATER = 95.0, 99.0
"""Confidence in percent of the first check of a suspicion, and of those after an undecided one: all checks together
have at most seven false positives in a hundred cases (Bonferroni).
"""
MOST_LOOKS = 3
"""Max runs that measure a suspicion, each with twice the boots of the one before, until it counts as refuted."""


def compared(runs: Sequence[Run], movements: Sequence[Movement], confidence: float = FIRST) -> list[Comparison]:
    """Compare the commit of checks with the one before it, for each movement, over all their boots: two queries.
    Verdicts take the number of tests into account.
    """
    variants = Variant.objects.filter(run__in=runs)
    sets: dict[tuple[str, str], list[SampleSet]] = {}
    names = {variant.pk: variant.name for variant in variants}
    for (key, test), found in samples_of(variants).items():
        sets.setdefault((names[key], test), []).append(found)
    return among([_judged(sets, movement, confidence) for movement in movements])


def _judged(sets: Mapping[tuple[str, str], Sequence[SampleSet]], movement: Movement, confidence: float) -> Comparison:
    a, b = (joined(sets.get((name, movement.test), ())) for name in (before_name(movement.variant), movement.variant))
    return judged(a, b, confidence, load=load_of(movement.test, a, b))


def change_of(comparison: Comparison) -> Change | None:
    """The change in percent with its interval, None if there is not enough data for one."""
    return comparison.effect.interval if comparison.effect else None


@transaction.atomic
def confirm(alert: Alert, runs: Sequence[Run], *, last: bool) -> Alert:
    """Store the results of runs for an alert's movements.

    The alert is confirmed if any movement was seen again. It is refuted if none was and the intervals exclude the
    suspected changes, or if this was the last check. Otherwise it stays as it is, for another check.
    """
    movements = list(alert.movements.all())
    looks = compared(runs, movements, FIRST if len(runs) == 1 else LATER)
    for movement, comparison in zip(movements, looks, strict=True):
        _take_down(movement, change_of(comparison), alert.branch.threshold)
    words = f"{runs[-1]}: " + "\n".join(in_words(movement) for movement in movements)
    if any(movement.confirmed for movement in movements):
        return states.confirm(alert.number, words)
    if not last and len(runs) < MOST_LOOKS and any(map(_may_be, movements)):
        states.note(alert, BY, f"{words}\nThe suspected change is still possible: more boots will decide.")
        return alert
    return states.refute(alert.number, words)


def _take_down(movement: Movement, change: Change | None, threshold: float) -> None:
    """A change is confirmed if it is proven in the suspected direction, and not proven to be below the threshold."""
    movement.confirmed = False
    if change is not None:
        same_way = (change.percent > 0) == (movement.suspected > 0)
        large = max(abs(change.low), abs(change.high)) >= threshold
        movement.confirmed = change.leaves_out_zero and same_way and large
        movement.percent, movement.low, movement.high = change.percent, change.low, change.high
    movement.save()


def _may_be(movement: Movement) -> bool:
    """Whether the check proves neither a change nor that the suspected one does not exist."""
    change = movement.change
    return change is None or (not change.leaves_out_zero and change.low <= movement.suspected <= change.high)


def in_words(movement: Movement) -> str:
    """Describe a movement in a line of text."""
    if movement.change is None:
        words = f"{percent(movement.suspected, signed=True)} in its series, not measured again"
    else:
        words = change_words(movement.change)
        words += "" if movement.confirmed else ", which proves nothing"
    return f"{movement.test} on {movement.variant}: {words}"
