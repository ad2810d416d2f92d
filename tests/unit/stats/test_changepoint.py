# SPDX-License-Identifier: BSD-2-Clause
"""Change points of generated series, whose truth is known, and of a real one."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from perfweb.stats.changepoint import MOST_CANDIDATES, candidates, change_points, divide, limited, noise, partition
from perfweb.stats.segmentation.partitioning import MOST_EDGES, all_edges

FREEBSD = Path(__file__).parents[1] / "imports" / "data" / "freebsd-head-2015-forwarding.csv"


def series(*levels: tuple[int, float], deviation: float, seed: int = 1) -> np.ndarray:
    """That many points at each level, with normal noise."""
    random = np.random.default_rng(seed)
    return np.concatenate([level + deviation * random.normal(size=count) for count, level in levels])


@pytest.mark.parametrize("percent", [0.5, 1, 2, 5, 20])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_step_is_found_with_its_place_and_size(percent: float, sign: int) -> None:
    size = sign * percent / 100
    (found,) = change_points(series((40, 1000), (30, 1000 * (1 + size)), deviation=1.5))
    assert found.first <= 40 <= found.last
    assert found.last - found.first <= (8 if percent < 1 else 1)
    assert found.change is not None
    assert found.change.low / 100 <= size <= found.change.high / 100
    assert found.before == pytest.approx(1000, rel=0.001)


def test_several_steps_and_one_back() -> None:
    values = series((100, 50), (20, 45), (60, 50), (300, 51), deviation=0.4)
    assert [found.place for found in change_points(values)] == pytest.approx([100, 120, 180], abs=3)


def test_outliers_are_no_change_and_hide_none() -> None:
    values = series((60, 1000), (60, 1030), deviation=5)
    values[[20, 45, 46, 90, 119]] = [500, 1500, 1480, 2000, 10]
    (found,) = change_points(values)
    assert found.place == pytest.approx(60, abs=1)
    assert found.after == pytest.approx(1030, rel=0.01)
    lonely = series((60, 1000), deviation=5)
    lonely[[0, 30, 59]] = [2000, 1, 1200]
    assert change_points(lonely) == []


@pytest.mark.parametrize("count", [6, 10, 20, 50, 200])
@pytest.mark.parametrize("shape", ["normal", "laplace", "t"])
def test_noise_alone_has_hardly_any(count: int, shape: str) -> None:
    random = np.random.default_rng(count)
    noise_of = {
        "normal": random.normal(size=(150, count)),
        "laplace": random.laplace(size=(150, count)),
        "t": random.standard_t(3, size=(150, count)),
    }[shape]
    assert sum(bool(change_points(1000 + 5 * row)) for row in noise_of) <= 6


def test_a_trend_a_cycle_and_memory_are_no_changes() -> None:
    random = np.random.default_rng(11)
    time, found = np.arange(100), {"trend": 0, "cycle": 0, "memory": 0}
    for _ in range(20):
        shapes = {
            "trend": 0.05 * time,
            "cycle": 2 * np.sin(2 * np.pi * (time / 40 + random.random())),
            "memory": 3 * lfilter([1], [1, -0.6], random.normal(size=100)),
        }
        for name, shape in shapes.items():
            found[name] += bool(change_points(1000 + shape + random.normal(size=100)))
    assert max(found.values()) <= 3, found


def test_a_reference_shows_what_the_machine_did_and_hides_no_step() -> None:
    random, found = np.random.default_rng(5), {"machine": 0, "alone": 0, "step": 0}
    for _ in range(20):
        walk = np.cumsum(3 * random.normal(size=100))
        values, reference = (1000 + walk + 10 * random.normal(size=100) for _ in range(2))
        found["machine"] += bool(change_points(values, reference.tolist()))
        found["alone"] += bool(change_points(values))
        values[60:] -= 50
        found["step"] += any(abs(point.place - 60) <= 2 for point in change_points(values, reference.tolist()))
    assert found["machine"] < found["alone"] / 2
    assert found["step"] >= 18


def test_a_reference_has_a_value_for_each_point() -> None:
    with pytest.raises(ValueError, match="7 points have a reference of 6"):
        change_points([1.0] * 7, [1.0] * 6)
    assert change_points([0.0] * 10, [0.0] * 10) == []


def test_a_few_points_of_wider_scatter_are_no_change() -> None:
    random, found = np.random.default_rng(3), 0
    for count in (3, 4, 5, 8) * 30:
        values = np.concatenate([random.normal(size=40), 4 * random.normal(size=count)])
        found += bool(change_points(1000 + values))
    assert found <= 9


@pytest.mark.parametrize("percent", [-2, 2])
def test_two_modes_hide_no_step(percent: float) -> None:
    found = 0
    for seed in range(20):
        values = series((60, 1000), (10, 1000 + 10 * percent), deviation=8, seed=seed)
        values += np.where(np.random.default_rng(seed + 100).random(70) < 1 / 3, 40, 0)
        found += any(abs(point.place - 60) <= 3 for point in change_points(values))
    assert found >= 16


def test_long_series_have_few_candidates_and_edges() -> None:
    walk = 1000 + np.cumsum(np.random.default_rng(1).normal(size=3000))
    assert 0 < len(candidates(walk, noise(walk))) <= MOST_CANDIDATES
    for count in (1, MOST_EDGES, 3000):
        edges = all_edges(count)
        assert len(edges) <= MOST_EDGES + 1
        assert (edges[0], edges[-1]) == (0, count)


def test_intervals_hold_what_they_promise() -> None:
    sizes, places = [], []
    for seed in range(200):
        for found in change_points(series((25, 1000), (25, 1030), deviation=10, seed=seed))[:1]:
            assert found.change is not None
            sizes.append(found.change.low <= 3 <= found.change.high)
            places.append(found.first <= 25 <= found.last)
    assert len(sizes) > 190
    assert np.mean(sizes) > 0.9
    assert np.mean(places) > 0.93


def test_a_year_of_freebsd_has_its_known_drop() -> None:
    with FREEBSD.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    revisions = list(dict.fromkeys(row["revision"] for row in rows))
    for test in ("fastforwarding", "ipfw-statefull", "pf-statefull"):
        rates = [
            [float(row["pps"]) for row in rows if (row["revision"], row["test"]) == (it, test)] for it in revisions
        ]
        down, up = change_points([float(np.mean(rate)) for rate in rates])
        assert revisions[down.place] == "284739"
        assert revisions[up.first] <= "285702" <= revisions[up.last]
        assert down.after < down.before
        assert up.after > up.before


def test_constant_and_short_series_have_no_change() -> None:
    assert change_points([]) == []
    assert change_points([1, 2, 3, 4, 5]) == []
    assert change_points([7.0] * 100) == []
    assert change_points([0.0] * 100) == []


def test_a_step_without_any_noise() -> None:
    (found,) = change_points([5.0] * 10 + [6.0] * 10)
    assert (found.place, found.first, found.last, found.before, found.after) == (10, 10, 10, 5, 6)
    assert found.change is not None
    assert found.change.percent == pytest.approx(20)
    (below,) = change_points([-5.0] * 10 + [6.0] * 10)
    assert below.change is None


@given(st.lists(st.floats(min_value=1e-9, max_value=1e15), max_size=60))
def test_places_are_in_order_and_within_their_range(values: list[float]) -> None:
    found = change_points(values)
    edges = [0, *(point.place for point in found), len(values)]
    assert all(later - earlier >= 3 for earlier, later in pairwise(edges)) or not found
    for index, point in enumerate(found):
        assert edges[index] < point.first <= point.last < edges[index + 2]


@given(st.integers(0, 1000), st.floats(0.01, 1000))
def test_units_do_not_matter(seed: int, factor: float) -> None:
    values = series((20, 100), (20, 104), (10, 101), deviation=1, seed=seed)
    scaled = change_points(values * factor)
    assert [point.place for point in scaled] == [point.place for point in change_points(values)]


def test_the_partition_is_the_best_of_all() -> None:
    """Compared with trying every place, which takes a thousand times as long."""
    for seed in range(20):
        values = series((30, 100), (15, 103), (40, 101), deviation=1, seed=seed)
        places = partition(values, 1.0, 10.0)
        assert cost(values, places) <= cost(values, exhaustive(values)) + 3


def cost(values: np.ndarray, places: list[int]) -> float:
    parts = np.split(values, places)
    penalty = 10 + 2 * np.log(len(values))
    return float(sum(((part - part.mean()) ** 2).sum() for part in parts) + penalty * len(places))


def exhaustive(values: np.ndarray) -> list[int]:
    best: list[tuple[float, list[int]]] = [(0.0, [])]
    penalty = 10 + 2 * np.log(len(values))
    for end in range(1, len(values) + 1):
        options = []
        for start in range(end - 2):
            part = values[start:end]
            before, places = best[start]
            paid = penalty if start else 0
            options.append((before + paid + ((part - part.mean()) ** 2).sum(), [*places, start] if start else []))
        best.append(min(options, default=(np.inf, [])))
    return best[-1][1]


def test_noise_and_limits_ignore_steps_and_outliers() -> None:
    values = series((200, 100), (200, 200), deviation=2)
    values[50] = 1e6
    assert noise(values) == pytest.approx(2, rel=0.15)
    assert limited(values, 2)[50] < 110
    assert np.abs(limited(values, 2)[[100, 300]] - values[[100, 300]]).max() == 0


def test_energy_distances_find_steps_and_changes_of_scatter() -> None:
    assert divide(series((40, 100), (40, 103), deviation=1).tolist()) == pytest.approx([40], abs=2)
    random = np.random.default_rng(5)
    scatter = np.concatenate([random.normal(size=60), 6 * random.normal(size=60)])
    assert divide(scatter.tolist())[0] == pytest.approx(60, abs=6)
    assert sum(bool(divide(random.normal(size=40).tolist(), seed)) for seed in range(40)) <= 3
    assert divide([1.0, 2.0]) == []
    assert divide([1.0] * 20) == []
    with pytest.raises(ValueError, match="2001 points are too many"):
        divide([1.0] * 2001)


def test_values_that_are_not_finite_are_refused() -> None:
    for function in (change_points, divide):
        with pytest.raises(ValueError, match="is nan"):
            function([1.0] * 10 + [float("nan")])
