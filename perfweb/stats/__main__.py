# SPDX-License-Identifier: BSD-2-Clause
"""Recomputes verdicts from a downloaded samples.csv, with second opinions: python -m perfweb.stats FILE."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from perfweb.stats.boots import Boots, replicates
from perfweb.stats.comparison import DEFAULT_MARGIN, Comparison, among, compare_boots
from perfweb.stats.design.components import variance_components
from perfweb.stats.ratio import Change
from perfweb.stats.samples import Metric, read_samples
from perfweb.stats.seeds import compare_seeds
from perfweb.stats.sequential import decide
from perfweb.stats.shape import mad_outliers, tukey_outliers
from perfweb.stats.student import CONFIDENCE_LEVELS, DEFAULT_CONFIDENCE
from perfweb.stats.twosample import Shift, bootstrap_ratio, mann_whitney, permutation_p, welch


def main(arguments: list[str] | None = None) -> int:
    """Print the results of every test, and return the exit status."""
    options = _options(arguments)
    try:
        metrics = [metric for metric in read_samples(options.samples) if _wanted(metric, options.metric)]
        pairs = [_pair(metric, options.baseline, options.variant) for metric in metrics]
        judged = among(
            [
                _judged(metric, names, options.confidence, options.margin)
                for metric, names in zip(metrics, pairs, strict=True)
            ]
        )
    except (OSError, ValueError) as error:
        print(f"perfweb.stats: {error}", file=sys.stderr)
        return 1
    for metric, names, result in zip(metrics, pairs, judged, strict=True):
        a, b = (metric.variants[name] for name in names)
        print(f"{metric.test}, {metric.metric} in {metric.unit}, {metric.direction} is better")
        for name, text in _opinions(a, b, result):
            print(f"  {name:19}{text}")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m perfweb.stats", description=__doc__)
    parser.add_argument("samples", type=Path, help="samples.csv of a run")
    parser.add_argument("--baseline", help="name of a variant (the first of the file)")
    parser.add_argument("--variant", help="name of the variant to compare with it (the next one)")
    parser.add_argument("--metric", action="append", help="judge only this one; may be repeated (all of them together)")
    parser.add_argument("--confidence", type=float, choices=CONFIDENCE_LEVELS, default=DEFAULT_CONFIDENCE)
    parser.add_argument("--margin", type=float, default=DEFAULT_MARGIN, help=f"percent ({DEFAULT_MARGIN:g})")
    return parser.parse_args(arguments)


def _wanted(metric: Metric, names: list[str] | None) -> bool:
    return len(metric.variants) > 1 and (names is None or metric.metric in names)


def _judged(metric: Metric, names: tuple[str, str], confidence: float, margin: float) -> Comparison:
    """Judge by seed if both variants were simulated, as the site does, and by boot otherwise."""
    a, b = names
    if all(seeds := (metric.by_seed(a), metric.by_seed(b))):
        return compare_seeds(*seeds, metric.direction, confidence, margin)
    return compare_boots(metric.variants[a], metric.variants[b], metric.direction, confidence, margin)


def _pair(metric: Metric, baseline: str | None, variant: str | None) -> tuple[str, str]:
    a = baseline or next(name for name in metric.variants if name != variant)
    b = variant or next(name for name in metric.variants if name != a)
    for name in (a, b):
        if name not in metric.variants:
            raise ValueError(f"{metric.test} has no variant {name}: there is {', '.join(metric.variants)}")
    return a, b


def _opinions(a: Boots, b: Boots, result: Comparison) -> Iterator[tuple[str, str]]:
    """Yield a name and a text for the verdict and each second opinion on it."""
    lack = f" ({result.lack} missing)" if result.lack else ""
    yield "verdict", f"{result.verdict}{lack}, margin {result.margin:g} %, confidence {result.confidence:g} %"
    if result.effect is None:
        return
    sizes = "{} and {}".format(*result.effect.observations)
    yield "change", f"{_percent(result.effect.interval)}, from {sizes} {result.effect.level}"
    counted = replicates(a, b)
    for name, test in (("Welch", welch), ("Hodges-Lehmann", mann_whitney)):
        yield name, _shift(test(counted.a, counted.b, result.confidence))
    yield "permutation", f"p = {permutation_p(counted.a, counted.b):.4f}"
    for name, statistic in (("mean", np.mean), ("median", np.median)):
        drawn = bootstrap_ratio(a, b, statistic, result.confidence)
        yield f"bootstrap {name}", _percent(drawn) if drawn else "takes five boots of each"
    yield "scatter", _scatter(a, b)
    yield "sequential", _sequential(a, b, result)
    for name, boots in (("baseline", a), ("variant", b)):
        samples = [value for boot in boots for value in boot]
        yield f"outliers, {name}", f"{len(tukey_outliers(samples))} (Tukey), {len(mad_outliers(samples))} (MAD)"


def _sequential(a: Boots, b: Boots, result: Comparison) -> str:
    """Report the verdict of a run that stops as soon as it is decided."""
    blocks = [(a[place : place + 1], b[place : place + 1]) for place in range(max(len(a), len(b)))]
    decision = decide(blocks, result.margin, 1 - result.confidence / 100, result.direction)
    interval = f", {_percent(decision.change)}" if decision.change else ""
    return (str(decision.verdict) if decision.decided else "go on") + interval


def _scatter(a: Boots, b: Boots) -> str:
    samples = [value for boots in (a, b) for boot in boots for value in boot]
    labels = [(side, number) for side, boots in enumerate((a, b)) for number, boot in enumerate(boots) for _ in boot]
    try:
        found = variance_components(samples, [side for side, _ in labels], {"boots": [boot for _, boot in labels]})
    except ValueError as error:
        return str(error)
    return ", ".join(f"{100 * part.share:.0f} % {part.name}" for part in found)


def _percent(change: Change) -> str:
    return f"{change.percent:+.2f} % ({change.low:+.2f} to {change.high:+.2f})"


def _shift(shift: Shift) -> str:
    return f"{shift.estimate:+.6g} ({shift.low:+.6g} to {shift.high:+.6g}), p = {shift.p:.4f}"


if __name__ == "__main__":
    sys.exit(main())
