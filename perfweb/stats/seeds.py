# SPDX-License-Identifier: BSD-2-Clause
"""The verdict on a deterministic testbed, where each sample is a function of the code and of a seed.

Both sides run with the same seeds, so that random choices are the same on both, and differences are due to the code
alone. Sides that agree seed by seed are identical, and a change is the mean of the changes of the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from perfweb.stats.boots import Level
from perfweb.stats.comparison import (
    DEFAULT_MARGIN,
    MINIMUM_BOOTS,
    Comparison,
    Direction,
    Effect,
    Lack,
    Verdict,
    checked_margin,
    judge,
)
from perfweb.stats.paired import detectable_change, paired_change, paired_p, pairs_needed
from perfweb.stats.ratio import Change
from perfweb.stats.student import DEFAULT_CONFIDENCE, checked_confidence
from perfweb.stats.summary import summarize

_SMALLEST, _LARGEST = 1e-9, 99.0
"""The margins between which checked_margin() accepts one."""

Seeds = Mapping[int, Sequence[float]]
"""The samples of one variant in one test by the seed of the boot; none is empty."""


def compare_seeds(
    a: Seeds,
    b: Seeds,
    direction: Direction | str,
    confidence: float = DEFAULT_CONFIDENCE,
    margin: float = DEFAULT_MARGIN,
) -> Comparison:
    """Judge the samples of variant `b` against those of the baseline `a` pair by pair, all in the same unit.

    Identical if every common seed gave the same values. Otherwise a pair is the mean of each side with one seed, and
    its ratio is one observation (perfweb.stats.paired). Seeds of only one side are left out. Raises ValueError as
    compare_boots() does.
    """
    better, level = Direction(direction), checked_confidence(confidence)
    checked_margin(margin)
    first, second = (
        summarize([value for some in side.values() for value in some]) if side else None for side in (a, b)
    )
    common = sorted(a.keys() & b.keys())
    effect, verdict, lack = None, Verdict.NOT_ENOUGH_DATA, None
    if not common:
        lack = Lack.SEEDS if a and b else Lack.SAMPLES
    elif all(set(a[seed]) == set(b[seed]) for seed in common):
        effect, verdict = _no_change(len(common)), Verdict.IDENTICAL
    elif len(common) < MINIMUM_BOOTS:
        lack = Lack.BOOTS
    else:
        means = [(float(np.mean(a[seed])), float(np.mean(b[seed]))) for seed in common]
        if min(map(min, means)) <= 0:
            lack = Lack.BASELINE
        else:
            effect = _effect(means, level / 100, margin)
            verdict = judge(effect.interval, effect.equivalence, better, margin)
            lack = Lack.PRECISION if verdict is Verdict.NOT_ENOUGH_DATA else None
    return Comparison(verdict, better, level, margin, first, second, (len(a), len(b)), (None, None), effect, lack)


def spread(seeds: Seeds) -> float:
    """Return by how much the means of seeds differ, in percent of the lowest; a margin for sides that chance moves."""
    means = [float(np.mean(values)) for values in seeds.values()]
    return min(max(100 * (max(means) - min(means)) / min(means), _SMALLEST), _LARGEST) if min(means) > 0 else _LARGEST


def _no_change(seeds: int) -> Effect:
    none = Change(0.0, 0.0, 0.0)
    return Effect(Level.SEEDS, (seeds, seeds), none, 1.0, none, detectable=0.0, needed=None)


def _effect(pairs: Sequence[tuple[float, float]], coverage: float, margin: float) -> Effect:
    interval = paired_change(pairs, coverage)
    return Effect(
        level=Level.SEEDS,
        observations=(len(pairs), len(pairs)),
        interval=interval,
        p=paired_p(pairs),
        equivalence=paired_change(pairs, 2 * coverage - 1),
        detectable=detectable_change(pairs, coverage),
        needed=pairs_needed(pairs, max(margin, abs(interval.percent)), coverage),
        widened=partial(paired_change, pairs),
    )
