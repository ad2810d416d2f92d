# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts as sentences. What is not proven is never called equal."""

from __future__ import annotations

from perfweb.reports.numbers import NOTHING, percent
from perfweb.stats.comparison import Comparison, Verdict
from perfweb.stats.student import MINIMUM_SAMPLES


def difference_words(result: Comparison) -> str:
    """Return the difference with its confidence interval in percent of the baseline, NOTHING where there is none."""
    found = result.difference
    if found is None or found.percent is None:
        return NOTHING
    return f"{percent(found.percent, signed=True)} ± {percent(found.percent_error)}"


def verdict_words(result: Comparison) -> str:
    """Return the verdict, and with one that decides nothing what it would have taken."""
    if result.verdict is Verdict.NO_DIFFERENCE_PROVEN:
        seen = percent(result.detectable_percent)
        return f"{result.verdict} ({seen} would show in 4 runs of 5)"
    if result.verdict is Verdict.NOT_ENOUGH_DATA:
        counts = " and ".join(str(summary.n if summary else 0) for summary in (result.a, result.b))
        return f"{result.verdict} ({counts} samples; it takes {MINIMUM_SAMPLES} each)"
    return str(result.verdict)


def css_name(verdict: Verdict) -> str:
    """Return a verdict as the name that style sheet and graphs know it by."""
    return verdict.name.lower().replace("_", "-")
