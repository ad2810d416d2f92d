# SPDX-License-Identifier: BSD-2-Clause
"""What a check says: a run that measured two commits boot by boot in turn, so that nothing but the commits differs."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from perfweb.reports.numbers import percent
from perfweb.reports.wording import change_words
from perfweb.runs.judging import NO_SAMPLES, judged, samples_of
from perfweb.runs.models import Run
from perfweb.stats.comparison import Comparison, among
from perfweb.stats.ratio import Change
from perfweb.tracking import states
from perfweb.tracking.measuring import before_name
from perfweb.tracking.models import Alert, Movement


def compared(run: Run, movements: Sequence[Movement]) -> list[Comparison]:
    """How the commit of a check differs from that before it, for each movement: one query.  Verdicts count how many
    tests there are.
    """
    variants = {variant.name: variant for variant in run.variants.all()}
    sets = samples_of(variants.values())
    found = []
    for movement in movements:
        sides = (variants.get(name) for name in (before_name(movement.variant), movement.variant))
        a, b = (sets.get((side.pk, movement.test), NO_SAMPLES) if side else NO_SAMPLES for side in sides)
        found.append(judged(a, b))
    return among(found)


def change_of(comparison: Comparison) -> Change | None:
    """The change in percent with its interval, None where there is not enough for one."""
    return comparison.effect.interval if comparison.effect else None


@transaction.atomic
def confirm(alert: Alert, run: Run) -> Alert:
    """Take down what a run says about what was suspected; the alert is confirmed if any of it was seen again."""
    movements = list(alert.movements.all())
    for movement, comparison in zip(movements, compared(run, movements), strict=True):
        _take_down(movement, change_of(comparison), alert.branch.threshold)
    words = "\n".join(in_words(movement) for movement in movements)
    if any(movement.confirmed for movement in movements):
        return states.confirm(alert.number, f"{run}: {words}")
    return states.refute(alert.number, f"{run}: {words}")


def _take_down(movement: Movement, change: Change | None, threshold: float) -> None:
    """Seen again is what is proven to move the way that was suspected, and not proven to be too small to tell."""
    movement.confirmed = False
    if change is not None:
        same_way = (change.percent > 0) == (movement.suspected > 0)
        large = max(abs(change.low), abs(change.high)) >= threshold
        movement.confirmed = change.leaves_out_zero and same_way and large
        movement.percent, movement.low, movement.high = change.percent, change.low, change.high
    movement.save()


def in_words(movement: Movement) -> str:
    """A movement in a line of text."""
    if movement.change is None:
        told = f"{percent(movement.suspected, signed=True)} in its series, not measured again"
    else:
        told = change_words(movement.change)
        told += "" if movement.confirmed else ", which proves nothing"
    return f"{movement.test} on {movement.variant}: {told}"
