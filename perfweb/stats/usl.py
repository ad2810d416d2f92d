# SPDX-License-Identifier: BSD-2-Clause
"""The Universal Scalability Law: the joint rate of N processors (Gunther 2007, "Guerrilla capacity planning", ch. 4).

X(N) = rate N / (1 + contention (N - 1) + coherence N (N - 1)): waiting for a shared resource makes the rate approach a
limit, and communication between all processors makes it fall again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

LEAD = 1.05
"""Share of the better of two rates; closer rates count as equal."""


@dataclass(frozen=True)
class Scalability:
    """`rate` is that of one processor, in the unit of the measurement; the others have no unit, and are 0 or more."""

    rate: float
    contention: float
    coherence: float

    def at(self, processors: float) -> float:
        """The rate of that many processors."""
        others = processors - 1
        return self.rate * processors / (1 + self.contention * others + self.coherence * processors * others)

    @property
    def peak(self) -> float:
        """The number of processors with the highest rate; infinite if more are always better."""
        if self.coherence == 0:
            return math.inf
        return math.sqrt(max(1 - self.contention, 0) / self.coherence)


def fit(rates: Mapping[int, float]) -> Scalability:
    """Return the law that fits rates by number of processors best, by least squares of relative errors.

    N / X(N) is linear in 1, N - 1 and N (N - 1), and none of their factors is negative.
    Raises ValueError for fewer than three numbers of processors, or a rate that is not positive and finite.
    """
    from scipy import optimize  # slow to import, and only the page of these rates needs it

    if len(rates) < 3:
        raise ValueError(f"{len(rates)} numbers of processors: the law has three parameters, and needs three or more")
    if not all(n >= 1 and math.isfinite(rate) and rate > 0 for n, rate in rates.items()):
        raise ValueError("the law needs one processor or more, and rates that are positive and finite")
    rows = np.array([[1, n - 1, n * (n - 1)] for n in rates], dtype=float)
    weights = np.array([rate / n for n, rate in rates.items()])
    (first, contention, coherence), _ = optimize.nnls(rows * weights[:, None], np.ones(len(weights)))
    if first == 0:
        raise ValueError("these rates grow faster than the number of processors: the law does not hold")
    return Scalability(1 / first, contention / first, coherence / first)


@dataclass(frozen=True)
class Overtaking:
    """`better` is better than `worse` with `after` processors, and worse with `before`, which are fewer."""

    better: str
    worse: str
    before: int
    after: int


def overtakings(rates: Mapping[str, Mapping[int, float]]) -> list[Overtaking]:
    """Find the numbers of processors at which one of several named rates becomes better than another."""
    found = []
    for one, other in itertools.combinations(rates, 2):
        ratios = {n: rates[one][n] / rates[other][n] for n in sorted(rates[one].keys() & rates[other].keys())}
        clear = [(n, ratio > 1) for n, ratio in ratios.items() if max(ratio, 1 / ratio) >= LEAD]
        for (before, led), (after, leads) in itertools.pairwise(clear):
            if led != leads:
                better, worse = (one, other) if leads else (other, one)
                found.append(Overtaking(better, worse, before, after))
    return found
