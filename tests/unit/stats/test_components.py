# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import numpy as np
import pytest

from perfweb.stats.design.components import variance_components

# Calcium in per cent of dry weight of two samples from each of three leaves of each of four turnip plants: Snedecor and
# Cochran 1967, "Statistical Methods", page 286; SAS/STAT User's Guide, the first example of PROC NESTED.
TURNIPS = [
    [[3.28, 3.09], [3.52, 3.48], [2.88, 2.80]],
    [[2.46, 2.44], [1.87, 1.92], [2.19, 2.19]],
    [[2.77, 2.66], [3.74, 3.44], [2.55, 2.55]],
    [[3.78, 3.87], [4.07, 4.12], [3.31, 3.31]],
]


def test_the_published_analysis_of_turnips() -> None:
    rows = [
        (value, plant, leaf)
        for plant, leaves in enumerate(TURNIPS)
        for leaf, values in enumerate(leaves)
        for value in values
    ]
    samples, plants, leaves = zip(*rows, strict=True)
    found = variance_components(samples, [0] * len(rows), {"plants": plants, "leaves": leaves})
    assert [part.name for part in found] == ["plants", "leaves", "samples"]
    assert [part.degrees_of_freedom for part in found] == [3, 8, 12]
    assert [part.mean_square for part in found] == pytest.approx([2.520115, 0.328775, 0.006654], abs=1e-6)
    assert [part.variance for part in found] == pytest.approx([0.365223, 0.161060, 0.006654], abs=1e-6)
    assert [100 * part.share for part in found] == pytest.approx([68.53, 30.22, 1.25], abs=0.01)


def test_unequal_numbers_agree_with_the_formula_for_one_factor() -> None:
    """Searle, Casella and McCulloch 1992, section 3.6: (MSA - MSE) / n0, n0 = (N - sum of n^2 / N) / (a - 1)."""
    boots = [[10.0, 12.0, 11.0], [15.0, 14.0], [8.0, 9.0, 10.0, 9.0]]
    samples = [value for boot in boots for value in boot]
    labels = [number for number, boot in enumerate(boots) for _ in boot]
    outer, inner = variance_components(samples, [0] * 9, {"boots": labels})
    n0 = (9 - (9 + 4 + 16) / 9) / 2
    assert inner.variance == pytest.approx(inner.mean_square)
    assert outer.variance == pytest.approx((outer.mean_square - inner.mean_square) / n0)


def test_means_of_variants_do_not_matter() -> None:
    random = np.random.default_rng(1)
    samples = random.normal(size=40)
    variants, boots = np.repeat([0, 1], 20).tolist(), np.tile(np.repeat(np.arange(5), 4), 2).tolist()
    apart = samples + 1000 * np.repeat([0, 1], 20)
    near, far = (variance_components(values.tolist(), variants, {"boots": boots}) for values in (samples, apart))
    assert [part.variance for part in near] == pytest.approx([part.variance for part in far])


def test_boots_that_are_too_alike_have_no_variance_and_are_pooled() -> None:
    found = variance_components([1.0, 9.0, 1.1, 9.1], [0] * 4, {"boots": [0, 0, 1, 1]})
    assert found[0].variance == 0
    assert found[1].variance == pytest.approx(np.var([1.0, 9.0, 1.1, 9.1], ddof=1))


def test_known_components_are_found_again() -> None:
    random = np.random.default_rng(2)
    layouts, boots, samples = 40, 4, 3
    values = (
        random.normal(0, 3, (layouts, 1, 1))
        + random.normal(0, 2, (layouts, boots, 1))
        + random.normal(0, 1, (layouts, boots, samples))
    )
    layout, boot, _ = np.indices(values.shape)
    found = variance_components(
        values.ravel().tolist(),
        [0] * values.size,
        {"layouts": layout.ravel().tolist(), "boots": boot.ravel().tolist()},
    )
    assert [part.variance for part in found] == pytest.approx([9, 4, 1], rel=0.3)


def test_a_factor_without_two_units_is_an_error() -> None:
    with pytest.raises(ValueError, match="variance of boots cannot be computed"):
        variance_components([1.0, 2.0], [0, 0], {"boots": [0, 0]})
    with pytest.raises(ValueError, match="variance of samples cannot be computed"):
        variance_components([1.0, 2.0], [0, 0], {"boots": [0, 1]})
    with pytest.raises(ValueError, match="every sample needs"):
        variance_components([1.0, 2.0], [0], {"boots": [0, 1]})
