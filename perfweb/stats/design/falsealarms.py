# SPDX-License-Identifier: BSD-2-Clause
"""The false positive rate of rules (A/A), by experiments of recorded boots.

Boots of two equal variants alternate in blocks of one each. An experiment is some consecutive blocks, as in a run; in
each block either boot might have been the other variant's. All such exchanges of all rows of blocks are tried (Fisher
1935, "The Design of Experiments": the design's own randomisation), which keeps any drift. Experiments with common
blocks depend on each other: a rate over all of them is less certain than one over as many independent ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfweb.stats.boots import replicates
from perfweb.stats.paired import paired_change
from perfweb.stats.ratio import Change, change, means
from perfweb.stats.twosample import welch

BLOCKS = 5
"""Boots of each variant in an experiment."""

Boot = Sequence[float]
Block = tuple[Boot, Boot]
Rule = Callable[[Sequence[Block], float], Change | None]
"""The change from the first boots of blocks to the second with an interval of that coverage, between 0 and 1."""

VERDICT = "boots, or samples where boots are alike"
"""The rule of perfweb.stats.comparison."""


def _sides(blocks: Sequence[Block]) -> tuple[list[Boot], list[Boot]]:
    return [a for a, _ in blocks], [b for _, b in blocks]


def _boot_means(blocks: Sequence[Block]) -> list[tuple[float, float]]:
    return [(float(np.mean(a)), float(np.mean(b))) for a, b in blocks]


def _by_samples(blocks: Sequence[Block], coverage: float) -> Change | None:
    """The rule that treats all samples as independent, as most benchmarks do."""
    a, b = ([value for boot in side for value in boot] for side in _sides(blocks))
    shift, base = welch(a, b, 100 * coverage), float(np.mean(a))
    return Change(*(100 * bound / base for bound in (shift.estimate, shift.low, shift.high)))


def _by_samples_pooled(blocks: Sequence[Block], coverage: float) -> Change | None:
    a, b = ([value for boot in side for value in boot] for side in _sides(blocks))
    return change(means(a, b), coverage)


def _by_boots(blocks: Sequence[Block], coverage: float) -> Change | None:
    a, b = zip(*_boot_means(blocks), strict=True)
    return change(means(a, b), coverage)


def _as_verdicts(blocks: Sequence[Block], coverage: float) -> Change | None:
    counted = replicates(*_sides(blocks))
    return change(means(counted.a, counted.b), coverage)


def _by_blocks(blocks: Sequence[Block], coverage: float) -> Change | None:
    return paired_change(_boot_means(blocks), coverage)


RULES: Mapping[str, Rule] = {
    "all samples, Welch": _by_samples,
    "all samples, Student (ministat)": _by_samples_pooled,
    "boots": _by_boots,
    VERDICT: _as_verdicts,
    "boots, paired in blocks": _by_blocks,
}


@dataclass(frozen=True, slots=True)
class Alarms:
    """The number of experiments, the share with a false positive, and the median width of its intervals to either
    side, in percent of the baseline.
    """

    share: float
    width: float


@dataclass(frozen=True, slots=True)
class Experiments:
    """The results of rules in experiments of `blocks` blocks each, of which `disjoint` have no common block."""

    comparisons: int
    disjoint: int
    blocks: int
    alarms: Mapping[str, Alarms]


def false_alarms(recorded: Sequence[Block], confidence: float) -> Experiments | None:
    """Return how often each of RULES reports a difference at `confidence` percent; None with fewer than BLOCKS blocks.

    `recorded` are boots of equal variants, block by block in their order, with positive samples.
    """
    if len(recorded) < BLOCKS:
        return None
    drawn = list(_experiments(recorded))
    alarms = {name: _alarms(rule, drawn, confidence / 100) for name, rule in RULES.items()}
    return Experiments(len(drawn), len(recorded) // BLOCKS, BLOCKS, alarms)


def _experiments(recorded: Sequence[Block]) -> Iterator[list[Block]]:
    """All exchanges of all rows of blocks; an exchange of all blocks of a row only changes the sign."""
    for first in range(len(recorded) - BLOCKS + 1):
        row = recorded[first : first + BLOCKS]
        for turned in itertools.product((False, True), repeat=BLOCKS - 1):
            yield [row[0], *((b, a) if turn else (a, b) for turn, (a, b) in zip(turned, row[1:], strict=True))]


def _alarms(rule: Rule, experiments: Sequence[Sequence[Block]], coverage: float) -> Alarms:
    intervals = [found for blocks in experiments if (found := rule(blocks, coverage)) is not None]
    share = sum(found.leaves_out_zero for found in intervals) / len(experiments)
    return Alarms(share, float(np.median([(found.high - found.low) / 2 for found in intervals])) if intervals else 0.0)
