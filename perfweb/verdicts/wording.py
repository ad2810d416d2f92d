# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts as sentences. An unproven difference is never called equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from perfweb.stats.boots import Level
from perfweb.stats.comparison import MINIMUM_BOOTS, Comparison, Lack, Verdict
from perfweb.stats.ratio import Change
from perfweb.stats.student import MINIMUM_SAMPLES
from perfweb.verdicts.numbers import NOTHING, duration, interval, percent

MARKS = {
    Verdict.FAILED: "✗",
    Verdict.SLOWER: "▼",
    Verdict.FASTER: "▲",
    Verdict.NOT_ENOUGH_DATA: "?",
    Verdict.NOT_JUDGED: "…",
    Verdict.EQUIVALENT: "=",
    Verdict.IDENTICAL: "≡",
}
"""A mark before the words, so that a verdict is shown neither by colour nor by shape alone."""

CHANGED = frozenset({Verdict.SLOWER, Verdict.FASTER})
"""Verdicts that prove a change worth a number."""


class Cautioned(Protocol):
    """A verdict with what puts it in doubt."""

    @property
    def verdict(self) -> Verdict: ...

    @property
    def lack(self) -> Lack | None: ...

    @property
    def boots_differ(self) -> bool: ...

    @property
    def lean(self) -> float | None: ...

    @property
    def others(self) -> tuple[str, ...]: ...


def caution_words(found: Cautioned) -> list[str]:
    """Return the warnings that stand beside a verdict on every page and in every text, each a few words."""
    boots = ["boots differ"] if found.boots_differ else []
    drift = [] if found.lean is None else [f"sentinel {percent(found.lean, signed=True)}"]
    return [*found.others, *boots, *drift]


def brief_words(found: Cautioned) -> str:
    """Return a verdict for a narrow cell, with the reason in two words where it decides nothing."""
    reason = lack_in_brief(found.lack)
    return f"{found.verdict} ({reason})" if reason else str(found.verdict)


def cell_words(found: Cautioned) -> str:
    """Return a verdict with its warnings, as a cell of a table in plain text."""
    return "; ".join([brief_words(found), *caution_words(found)])


def lack_in_brief(lack: Lack | None) -> str:
    """Return the reason why there is no other verdict, in two words; nothing where more boots are all it takes."""
    return _LACKS.get(lack, "") if lack else ""


_LACKS = {
    Lack.SAMPLES: "few samples",
    Lack.BOOTS: "few boots",
    Lack.BASELINE: "baseline near zero",
    Lack.MODES: "two modes",
    Lack.SEEDS: "other seeds",
    Lack.CERTAINTY: "many tests",
    Lack.VALIDITY: "all samples void",
}


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
    if seen.low == seen.high:  # counted, which has no interval
        return f"{seen.percent:+.4f} %" if seen.percent else percent(0.0)
    return interval(seen.percent, seen.low, seen.high)


def verdict_words(
    result: Comparison, boot_seconds: float | None = None, sides: tuple[str, str] = ("the base", "the other side")
) -> str:
    """Return the verdict; if undecided, also what would decide.

    `boot_seconds` is how long a boot of each variant takes together with its measurements, None when not known.
    `sides` are the names of the base and of the other side.
    """
    if result.verdict is Verdict.IDENTICAL and result.effect:
        seeds = result.effect.observations[0]
        return f"{result.verdict} with {seeds} {'seed' if seeds == 1 else 'seeds'}"
    if result.verdict is Verdict.EQUIVALENT:
        certain = ", but not the same" if result.effect and result.effect.proven else ""
        return f"{result.verdict}{within(result)}{certain}"
    if result.lack is not None:
        return f"{result.verdict} ({_lack_words(result, boot_seconds, sides)})"
    return str(result.verdict)


def within(result: Comparison) -> str:
    """Return the margin of a verdict; functions that do not differ need none."""
    by_function = result.effect is not None and result.effect.level is Level.FUNCTIONS
    return ", by function" if by_function else f" within ±{result.margin:g} %"


def evidence_words(result: Comparison) -> str:
    """Return the basis of a verdict: the amount of data, the unit of observation, and the settings."""
    samples = " and ".join(str(summary.n if summary else 0) for summary in (result.a, result.b))
    seen = f"{samples} samples of {result.boots[0]} and {result.boots[1]} boots"
    settings = f"margin ±{result.margin:g} %, confidence {result.confidence:g} %"
    if result.effect is None:
        return f"{seen}; {settings}"
    if result.verdict is Verdict.IDENTICAL:
        return f"{seen}, compared by {result.effect.level}: every sample is the same"
    if result.effect.level is Level.FUNCTIONS:
        return f"{seen}, compared by function; windows and seeds explain ±{percent(result.margin)} of the path"
    shown = f"changes from {percent(result.effect.detectable)} on would show in 4 runs of 5"
    return f"{seen}, compared by {result.effect.level}; {shown}; {settings}"


def _lack_words(result: Comparison, boot_seconds: float | None, sides: tuple[str, str]) -> str:
    """Say what is missing and, where that is known, how much of it."""
    empty = [side for side, summary in zip(sides, (result.a, result.b), strict=True) if summary is None]
    where = " and of ".join(empty)
    samples = [summary.n if summary else 0 for summary in (result.a, result.b)]
    apart = max((modes.apart for modes in result.modes if modes), default=None)
    return {
        Lack.SAMPLES: f"{samples[0]} and {samples[1]} samples; each side needs {MINIMUM_SAMPLES}",
        Lack.BOOTS: f"{result.boots[0]} and {result.boots[1]} boots; each side needs {MINIMUM_BOOTS}",
        Lack.BASELINE: _baseline_words(result),
        Lack.SEEDS: "the two sides have no seed in common: simulate them in one run",
        Lack.MODES: f"two modes, {percent(apart)} apart: no mean describes both",
        Lack.CERTAINTY: "many tests: with this number of tests the change may be chance, so repeat the run",
        Lack.RESULT: f"on every boot of {where}: the page of the run has the reason",
        Lack.VALIDITY: f"every sample of {where} is void: the page of the run has the reason",
        Lack.END: "only a run that is done has verdicts",
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
        result.effect.detectable
        for result in results
        if result.effect and result.effect.level is not Level.FUNCTIONS and result.verdict is not Verdict.IDENTICAL
    ]
    if not effects or any(result.verdict in {Verdict.FASTER, Verdict.SLOWER} for result in results):
        return ""
    return f"Changes from {percent(max(effects))} on would have shown in each test in 4 runs of 5."


DOUBT = (
    "The percentage of a sentinel beside a verdict is its change between the boots of the base and of that side. "
    "Drift may explain at least half of the change, or half of the margin."
)
"""What the warning about a sentinel means, once below verdicts that have some."""


def css_name(verdict: Verdict) -> str:
    """Return the name of a verdict in the style sheet and in graphs."""
    return verdict.name.lower().replace("_", "-")
