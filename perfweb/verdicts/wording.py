# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts as sentences. An unproven difference is never called equal."""

from __future__ import annotations

from collections.abc import Sequence

from perfweb.stats.comparison import MINIMUM_BOOTS, Comparison, Lack, Verdict
from perfweb.stats.ratio import Change
from perfweb.stats.student import MINIMUM_SAMPLES
from perfweb.verdicts.numbers import NOTHING, duration, percent


def difference_words(result: Comparison) -> str:
    """Return the change in percent of the baseline with its interval; identical samples and missing samples have
    none.
    """
    if result.verdict is Verdict.IDENTICAL:
        return percent(0.0)
    return change_words(result.effect.interval if result.effect else None)


def change_words(seen: Change | None) -> str:
    """Return a change in percent with its interval, NOTHING without one."""
    if seen is None:
        return NOTHING
    return f"{percent(seen.percent, signed=True)} ({_bound(seen.low)} to {_bound(seen.high)})"


def verdict_words(result: Comparison, boot_seconds: float | None = None) -> str:
    """Return the verdict; if undecided, also what would decide.

    `boot_seconds` is the time of a boot of each variant with its measurements, None if unknown.
    """
    if result.verdict is Verdict.IDENTICAL and result.effect:
        seeds = result.effect.observations[0]
        return f"{result.verdict} with {seeds} {'seed' if seeds == 1 else 'seeds'}"
    if result.verdict is Verdict.EQUIVALENT:
        certain = ", but not the same" if result.effect and result.effect.proven else ""
        return f"{result.verdict} within ±{result.margin:g} %{certain}"
    if result.lack is not None:
        return f"{result.verdict} ({_lack_words(result, boot_seconds)})"
    return str(result.verdict)


def evidence_words(result: Comparison) -> str:
    """Return the basis of a verdict: the amount of data, the unit of observation, and the settings."""
    samples = " and ".join(str(summary.n if summary else 0) for summary in (result.a, result.b))
    seen = f"{samples} samples of {result.boots[0]} and {result.boots[1]} boots"
    asked = f"margin ±{result.margin:g} %, confidence {result.confidence:g} %"
    if result.effect is None:
        return f"{seen}; {asked}"
    if result.verdict is Verdict.IDENTICAL:
        return f"{seen}, compared by {result.effect.level}: every sample is the same"
    shown = f"changes from {percent(result.effect.detectable)} on would show in 4 runs of 5"
    return f"{seen}, compared by {result.effect.level}; {shown}; {asked}"


def _lack_words(result: Comparison, boot_seconds: float | None) -> str:
    """Describe what is missing and, if known, how much of it."""
    samples = [summary.n if summary else 0 for summary in (result.a, result.b)]
    apart = max((modes.apart for modes in result.modes if modes), default=None)
    return {
        Lack.SAMPLES: f"{samples[0]} and {samples[1]} samples; each side needs {MINIMUM_SAMPLES}",
        Lack.BOOTS: f"{result.boots[0]} and {result.boots[1]} boots; each side needs {MINIMUM_BOOTS}",
        Lack.BASELINE: _baseline_words(result),
        Lack.SEEDS: "the two sides have no seed in common: simulate them in one run",
        Lack.MODES: f"two modes, {percent(apart)} apart: no mean describes both",
        Lack.CERTAINTY: "with this number of tests the change may be chance: repeat the run",
        Lack.PRECISION: _precision_words(result, boot_seconds),
    }[result.lack or Lack.PRECISION]


def _baseline_words(result: Comparison) -> str:
    """Explain why there is no percentage of the baseline."""
    if result.a and result.a.mean <= 0:
        return f"the baseline's mean is {result.a.mean:g}, so a change has no percentage"
    return "the baseline scatters so much that its mean may be zero"


def _precision_words(result: Comparison, boot_seconds: float | None) -> str:
    """Describe how many more boots would decide, and how long they take."""
    if result.more_boots is None:
        return f"too noisy to decide about ±{result.margin:g} %"
    if result.more_boots == 0:
        return "it could have been, with luck: repeat the run"
    time = f", {duration(result.more_boots * boot_seconds)}" if boot_seconds else ""
    boots = "boot" if result.more_boots == 1 else "boots"
    return f"it takes about {result.more_boots} more {boots} of each{time}"


def seen_at_best(results: Sequence[Comparison]) -> str:
    """Return the detectable change if no difference was found, else an empty text."""
    effects = [
        result.effect.detectable for result in results if result.effect and result.verdict is not Verdict.IDENTICAL
    ]
    if not effects or any(result.verdict in {Verdict.FASTER, Verdict.SLOWER} for result in results):
        return ""
    return f"Changes from {percent(max(effects))} on would have shown in each test in 4 runs of 5."


DOUBT = (
    "The percentage of a sentinel beside a verdict is its change between the boots of the base and of that side. "
    "Drift may explain at least half of the change, or half of the margin."
)
"""The explanation of doubt_words(), once below verdicts that have some."""


def doubt_words(lean: float | None) -> str:
    """Return the lean of a sentinel to one side, beside a verdict that it puts in doubt, or an empty text."""
    return "" if lean is None else f"; sentinel {percent(lean, signed=True)}"


def css_name(verdict: Verdict) -> str:
    """Return the name of a verdict in the style sheet and in graphs."""
    return verdict.name.lower().replace("_", "-")


def _bound(value: float) -> str:
    """Write a bound of an interval like percent(), without the unit, which the change itself has."""
    return percent(value, signed=True).removesuffix("%").rstrip()
