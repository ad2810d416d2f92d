# SPDX-License-Identifier: BSD-2-Clause
"""The ministat text compared with the real program, byte for byte."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perfweb.stats.ministat import LARGEST, MAXIMUM_SETS, ministat
from perfweb.stats.student import CONFIDENCE_LEVELS

IGUANA = [50, 200, 150, 400, 750, 400, 150]
CHAMELEON = [150, 400, 720, 500, 930]

tame = st.floats(min_value=-1e6, max_value=1e6, allow_subnormal=False)
ties = st.integers(min_value=-3, max_value=3).map(float)
rates = st.floats(min_value=9e9, max_value=1.1e10)
huge = st.floats(min_value=-LARGEST, max_value=LARGEST, allow_subnormal=False)
tiny = st.floats(min_value=-1e-200, max_value=1e-200, allow_subnormal=False)
drawn = st.sampled_from([tame, ties, rates, huge, tiny]).flatmap(lambda kind: st.lists(kind, min_size=3, max_size=40))
equal = st.builds(lambda value, n: [value] * n, tame | huge, st.integers(3, 300))


@st.composite
def many(draw: st.DrawFn) -> list[float]:
    """Up to a thousand samples around a mean, with a spread from far larger than the mean to almost nothing."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    mean, spread = draw(st.sampled_from([-1e6, 0.0, 1e-30, 1.0, 42e3, 1e10])), draw(st.sampled_from([1e-6, 0.01, 1.0]))
    digits = draw(st.sampled_from([1, 3, 17]))
    samples = (mean or 1) * random.normal(float(mean != 0), spread, draw(st.integers(3, 1000)))
    return [float(f"{sample:.{digits}g}") for sample in samples]


one_set = drawn | equal | many()
sets_of_samples = st.lists(one_set, min_size=1, max_size=MAXIMUM_SETS)


def real_ministat(sets: dict[str, list[float]], *options: str) -> str:
    """Run Debian's ministat in a directory with one file for each set."""
    with tempfile.TemporaryDirectory() as directory:
        for name, samples in sets.items():
            Path(directory, name).write_text("".join(f"{sample!r}\n" for sample in samples))
        done = subprocess.run(
            ["ministat", *options, *sets], cwd=directory, capture_output=True, text=True, check=True, timeout=60
        )
    return done.stdout


def has_defined_plot(samples: list[list[float]]) -> bool:
    """Whether the span is more than rounding errors: otherwise the real program may write outside its plot."""
    flat = [value for values in samples for value in values]
    exact = all(sum(values) / len(values) == values[0] for values in samples)
    return exact or max(flat) - min(flat) > 1e-9 * max(map(abs, flat))


@pytest.mark.parametrize("confidence", CONFIDENCE_LEVELS)
def test_the_example_of_the_manual_page(confidence: float) -> None:
    sets = {"iguana": list(map(float, IGUANA)), "chameleon": list(map(float, CHAMELEON))}
    ours = ministat(sets, confidence=confidence, width=60, separate_bars=True)
    assert ours == real_ministat(sets, "-s", "-w", "60", "-c", f"{confidence:g}")


@settings(max_examples=200)
@given(
    samples=sets_of_samples,
    confidence=st.sampled_from(CONFIDENCE_LEVELS),
    width=st.integers(min_value=2, max_value=200),
    separate_bars=st.booleans(),
)
def test_any_samples_give_the_text_of_the_real_program(
    samples: list[list[float]], confidence: float, width: int, separate_bars: bool
) -> None:
    assume(has_defined_plot(samples))
    sets = {f"set{index}": values for index, values in enumerate(samples)}
    options = ["-w", str(width), "-c", f"{confidence:g}"] + ["-s"] * separate_bars
    ours = ministat(sets, confidence=confidence, width=width, separate_bars=separate_bars)
    assert ours == real_ministat(sets, *options)


@settings(max_examples=100)
@given(samples=sets_of_samples, confidence=st.sampled_from(CONFIDENCE_LEVELS))
def test_without_plot_and_without_comparison(samples: list[list[float]], confidence: float) -> None:
    sets = {f"set{index}": values for index, values in enumerate(samples)}
    level = f"{confidence:g}"
    assert ministat(sets, confidence=confidence, plot=False) == real_ministat(sets, "-A", "-c", level)
    assert ministat(sets, confidence=confidence, summary_only=True) == real_ministat(sets, "-n", "-c", level)


@pytest.mark.parametrize("confidence", CONFIDENCE_LEVELS)
@pytest.mark.parametrize("degrees", [4, 7, 8, 9, 10, 11, 12, 13, 18, 50, 99, 100, 101, 150, 400])
def test_every_kind_of_row_of_the_table_of_critical_values(confidence: float, degrees: int) -> None:
    n = (degrees + 2) // 2
    sets = {"a": [float(i % 2) for i in range(n)], "b": [1e4 + i % 3 for i in range(degrees + 2 - n)]}
    assert ministat(sets, confidence=confidence) == real_ministat(sets, "-c", f"{confidence:g}")


def test_identical_samples_have_no_plot() -> None:
    sets = {"a": [5.0] * 3, "b": [5.0] * 4}
    assert "span is zero width" in ministat(sets)
    assert ministat(sets) == real_ministat(sets)


def test_a_variance_that_rounding_made_negative_still_counts() -> None:
    sets = {"a": [1e-05] * 28, "b": [1336020692988183.0] * 54}
    assert "Difference at" in ministat(sets)
    assert ministat(sets) == real_ministat(sets)


def test_a_reference_whose_mean_is_zero() -> None:
    sets = {"a": [0.0, 0.0, 0.0], "b": [-1.0, -2.0, -3.0]}
    assert "-inf% +/- inf%" in ministat(sets)
    assert ministat(sets) == real_ministat(sets)


def test_too_few_samples_are_named() -> None:
    with pytest.raises(ValueError, match="direct has 2 samples: measure again"):
        ministat({"queue": [1, 2, 3], "direct": [1, 2]})


def test_errors_for_bad_arguments_state_what_is_allowed() -> None:
    good = {"a": [1.0, 2.0, 3.0]}
    with pytest.raises(ValueError, match=r"choose one of 80, 90, 95, 98, 99, 99.5"):
        ministat(good, confidence=97)
    with pytest.raises(ValueError, match="at least 2"):
        ministat(good, width=1)
    with pytest.raises(ValueError, match="from 1 to 7"):
        ministat({str(i): [1.0, 2.0, 3.0] for i in range(8)})
    with pytest.raises(ValueError, match="from 1 to 7"):
        ministat({})
    with pytest.raises(ValueError, match="sample 2 is nan"):
        ministat({"a": [1.0, float("nan"), 3.0]})
