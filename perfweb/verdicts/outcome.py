# SPDX-License-Identifier: BSD-2-Clause
"""What a finished run found beside the verdict on each test, the same for pages, mails, comments and checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfweb.counted.comparison import LoadComparison
from perfweb.counted.diagnostics import Diagnostic
from perfweb.lab.origins import Origin
from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Run, RunState
from perfweb.verdicts.doubts import run_pairs
from perfweb.verdicts.failures import VariantFailure, failures, warnings_of_run
from perfweb.verdicts.functions import in_words, loads_of
from perfweb.verdicts.run_verdicts import Pair


@dataclass(frozen=True)
class PairFunctions:
    """The functions that differ between two variants whose kernels are counted."""

    a: str
    b: str
    loads: Sequence[LoadComparison]

    @property
    def words(self) -> str:
        """How many loads cost more or less, and the largest difference of a function."""
        return in_words(self.loads)


@dataclass(frozen=True)
class Outcome:
    """The variants that fail, the compiler's warnings that only the patch causes, and the functions that differ.

    `reason` is that of the run's state; empty if the failures have it.
    """

    failures: Sequence[VariantFailure] = ()
    warnings: Sequence[Diagnostic] = ()
    functions: Sequence[PairFunctions] = ()
    reason: str = ""

    @property
    def loads(self) -> list[LoadComparison]:
        """The loads of all pairs."""
        return [load for pair in self.functions for load in pair.loads]


NOTHING = Outcome()


def outcome(run: Run, pairs: Sequence[Pair] | None = None) -> Outcome:
    """Return the outcome of a run, which has none before its end. `pairs` are its comparisons, if they are known."""
    failed = failures([run]).get(run.pk, [])
    if pairs is None and run.state == RunState.DONE and run.testbed.origin == Origin.COUNTED:
        pairs = run_pairs(run, counted_samples([run])[run.pk])
    return Outcome(
        failures=failed,
        warnings=warnings_of_run(run) if run.is_over else [],
        functions=[
            PairFunctions(pair.a.name, pair.b.name, loads) for pair in pairs or () if (loads := loads_of(pair.compared))
        ],
        reason="" if any(one.text in run.reason for one in failed) else run.reason,
    )
