# SPDX-License-Identifier: BSD-2-Clause
"""The comparison of two variants of a run."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from perfweb.reports.comparisons import compare_variants, counted_samples, tally
from perfweb.reports.figures import intervals_figure
from perfweb.reports.views.runs import find_run
from perfweb.runs.models import Run, Variant
from perfweb.stats.student import CONFIDENCE_LEVELS, DEFAULT_CONFIDENCE


@require_safe
def comparison(request: HttpRequest, number: int, a: str, b: str) -> HttpResponse:
    """Compare variant `b` with variant `a`; `?confidence=` takes one of ministat's levels in percent."""
    run = find_run(number)
    first, second = _variants(run, a, b)
    confidence = _confidence(request.GET.get("confidence", f"{DEFAULT_CONFIDENCE:g}"))
    compared = compare_variants(first, second, counted_samples([run])[run.pk], confidence)
    context = {
        "run": run,
        "a": first,
        "b": second,
        "confidence": confidence,
        "confidence_levels": CONFIDENCE_LEVELS,
        "compared": compared,
        "tally": tally(compared),
        "any_boots_differ": any(comparison.boots_differ for comparison in compared),
        "figure": intervals_figure(compared),
    }
    return render(request, "reports/comparison.html", context)


def _variants(run: Run, *wanted: str) -> list[Variant]:
    variants = {variant.name: variant for variant in run.variants.all()}
    if missing := [name for name in wanted if name not in variants]:
        raise Http404(f"Run {run.pk} has no variant “{missing[0]}”. Its variants are: {', '.join(variants)}.")
    return [variants[name] for name in wanted]


def _confidence(text: str) -> float:
    levels = {f"{level:g}": level for level in CONFIDENCE_LEVELS}
    if text not in levels:
        raise Http404(f"There is no confidence level “{text}”. Choose one of {', '.join(levels)} percent.")
    return levels[text]
