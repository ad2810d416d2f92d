# SPDX-License-Identifier: BSD-2-Clause
"""False positives of rules, counted on A/A boots."""

from __future__ import annotations

import numpy as np
import pytest

from perfweb.stats.comparison import compare_boots
from perfweb.stats.design.falsealarms import BLOCKS, RULES, VERDICT, Block, false_alarms


def blocks(count: int, boots: float, samples: float, *, drift: float = 0.0, seed: int = 1) -> list[Block]:
    """Boots and their two samples that scatter by these percentages, and drift from block to block."""
    random = np.random.default_rng(seed)
    level = 1000 * (1 + drift / 100 * np.arange(count)[:, None, None])
    scatter = boots * random.normal(size=(count, 2, 1)) + samples * random.normal(size=(count, 2, 2))
    values = level * (1 + scatter / 100)
    return [(a.tolist(), b.tolist()) for a, b in values]


def test_rules_that_count_samples_give_false_alarms_where_boots_differ_and_verdicts_do_not() -> None:
    found = false_alarms(blocks(40, 2.0, 0.3), 95)
    assert found is not None
    assert (found.comparisons, found.disjoint, found.blocks) == (36 * 16, 8, BLOCKS)
    assert found.alarms["all samples, Welch"].share > 0.12
    assert 0.01 <= found.alarms[VERDICT].share <= 0.09
    assert found.alarms["boots, paired in blocks"].share <= 0.09


def test_drift_widens_all_intervals_but_those_of_pairs() -> None:
    found = false_alarms(blocks(20, 0.5, 0.3, drift=3.0), 95)
    assert found is not None
    assert found.alarms["boots, paired in blocks"].width < found.alarms[VERDICT].width / 2


def test_what_never_scatters_gives_no_alarm() -> None:
    found = false_alarms([([5.0, 5.0], [5.0, 5.0])] * BLOCKS, 95)
    assert found is not None
    assert {name: alarms.share for name, alarms in found.alarms.items()} == dict.fromkeys(RULES, 0.0)


def test_too_few_blocks_give_no_result() -> None:
    assert false_alarms(blocks(BLOCKS - 1, 1.0, 1.0), 95) is None


@pytest.mark.parametrize("seed", range(5))
def test_the_rule_of_verdicts_is_theirs(seed: int) -> None:
    drawn = blocks(BLOCKS, seed / 2, 1.0, seed=seed)
    judged = compare_boots([a for a, _ in drawn], [b for _, b in drawn], "higher").effect
    assert judged is not None
    assert RULES[VERDICT](drawn, 0.95) == judged.interval
