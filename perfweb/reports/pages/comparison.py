# SPDX-License-Identifier: BSD-2-Clause
"""The comparison of two to seven sides: variants of one run, of several, or of commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from perfweb.counted import rows
from perfweb.figures.durations import Durations, durations_figure, read_durations
from perfweb.figures.graphs import Graph, respond
from perfweb.figures.latencies import Latencies, latency_figure, read_latencies
from perfweb.figures.plots import boxes_figure, distributions_figure, intervals_figure
from perfweb.headers import revalidated
from perfweb.parameters import choice_in, percent_in, text_in, texts_in
from perfweb.reports.pages.runs import find_run
from perfweb.runs.models import FINAL_STATES, Run, Variant
from perfweb.stats.comparison import DEFAULT_MARGIN, Verdict
from perfweb.stats.ministat import ministat
from perfweb.stats.shape import Modes
from perfweb.stats.student import CONFIDENCE_LEVELS, DEFAULT_CONFIDENCE, MINIMUM_SAMPLES
from perfweb.stats.summary import Summary, summarize
from perfweb.verdicts import names
from perfweb.verdicts.comparisons import TestComparison, tally
from perfweb.verdicts.counters import AT_END, AT_START, counter_rows, reports_of
from perfweb.verdicts.doubts import side_comparisons
from perfweb.verdicts.environment import side_rows
from perfweb.verdicts.failures import new_warnings
from perfweb.verdicts.functions import loads_of
from perfweb.verdicts.lockprofiles import TITLES, lock_tables
from perfweb.verdicts.numbers import Scale, scale_for
from perfweb.verdicts.sides import MOST_SIDES, Side, SideError, read_sides, sides, values_by_side
from perfweb.verdicts.tags import tag_of_database, tag_of_run

OFFERED_RUNS = 10
OFFERED_MARGINS = (0.5, 1.0, DEFAULT_MARGIN, 5.0)
MOST_DRAWN = 12
"""Max tests that the page of a comparison shows with their samples; beyond it, only the selected one."""


@dataclass(frozen=True)
class SideNumbers:
    """The result of one side in a test, and its comparison with the base (None for the base itself); a mean does not
    describe samples with two modes.
    """

    label: str
    summary: Summary | None
    modes: Modes | None
    comparison: TestComparison | None


@dataclass(frozen=True)
class TestSection:
    """One test of a comparison: its comparisons with the base, and its graphs."""

    test: str
    comparisons: list[TestComparison]
    scale: Scale
    numbers: list[SideNumbers]
    sets: dict[str, list[float]]
    graphs: list[Graph]
    latencies: list[Latencies]
    durations: Durations | None
    confidence: float
    measured: frozenset[int]
    """The keys of the variants that have samples of the test."""

    @property
    def has_ministat(self) -> bool:
        """Whether all sides that have any have as many samples as ministat wants."""
        return min(map(len, self.sets.values()), default=0) >= MINIMUM_SAMPLES

    @property
    def ministat(self) -> str:
        """The output of `ministat` for the files of all sides, or the reason why it refuses them."""
        try:
            return ministat(self.sets, confidence=self.confidence)
        except ValueError as error:
            return f"{error}\n"


@require_safe
@cache_control(no_cache=True)
@revalidated(tag_of_run)
def comparison(request: HttpRequest, number: int, a: str, b: str) -> HttpResponse:
    """Compare variant `b` with variant `a` of a run.

    `?confidence=` is one of ministat's levels in percent, `?margin=` the margin of equivalence in percent.
    """
    run = find_run(number)
    return _page(request, sides_of_run(run, a, b), run)


@require_safe
@cache_control(no_cache=True)
@revalidated(tag_of_database)
def compare(request: HttpRequest) -> HttpResponse:
    """Compare `?base=12/deferred` with up to six `&with=13/direct`; without a base, show a form to choose."""
    base, others = text_in(request, "base"), texts_in(request, "with")
    if not base and not others:
        return _choice(request, "")
    try:
        compared = read_sides([base, *others])
    except SideError as error:
        return _choice(request, str(error), status=400)
    return _page(request, compared, None)


def _choice(request: HttpRequest, problem: str, status: int = 200) -> HttpResponse:
    """A form with the variants of the latest runs."""
    runs = Run.objects.filter(state__in=FINAL_STATES).select_related("plan").prefetch_related("variants__build")
    context = {
        "problem": problem,
        "runs": [run for run in runs[:OFFERED_RUNS] if run.variants.all()],
        "most": MOST_SIDES,
        "base": text_in(request, "base"),
        "others": texts_in(request, "with"),
    }
    return render(request, "reports/compare_choice.html", context, status=status)


def _page(request: HttpRequest, compared: list[Side], run: Run | None) -> HttpResponse:
    confidence, margin = selected_limits(request)
    base, others = compared[0], compared[1:]
    found = side_comparisons(compared, confidence, margin)
    results, everything = found.results, found.everything
    selected = choice_in(request, "test", sorted({comparison.test for comparison in everything}))
    sections = _sections(compared, results, confidence, selected)
    reports = reports_of(compared, (AT_START, AT_END, *TITLES))
    functions = loads_of(results[0]) if len(others) == 1 else []
    intervals = Graph("intervals", "Differences with their confidence intervals", intervals_figure(everything))
    context: dict[str, Any] = {
        "run": run,
        "base": base,
        "others": others,
        "sides": compared,
        "sample": max(side.sample for side in compared),
        "embedded": f"{', '.join(other.label for other in others)} vs {base.label}",
        "tallies": [(other, tally(result), *_extremes(result)) for other, result in zip(others, results, strict=True)],
        "confidence": confidence,
        "confidence_levels": CONFIDENCE_LEVELS,
        "margin": margin,
        "margins": OFFERED_MARGINS,
        "sections": sections,
        "detailed": [section for section in sections if section.graphs],
        "environment": side_rows([side.variants[0] for side in compared]),
        "counters": counter_rows(reports),
        "locks": lock_tables(reports),
        "counted": rows.of_comparison(functions, base.label, others[0].label) if functions else None,
        "warnings": new_warnings(base.variants, others[0].variants) if functions else [],
        "any_boots_differ": any(comparison.boots_differ for comparison in everything),
        "elsewhere": list(dict.fromkeys(words for comparison in everything for words in comparison.others)),
        "any_doubted": any(comparison.lean is not None for comparison in everything),
        "sentinel": found.sentinel,
        "intervals": intervals if intervals.figure["data"] and not functions else None,
        "exchanged": _exchanged(compared, run),
    }
    graphs = [graph for section in sections for graph in section.graphs]
    return respond(request, "reports/comparison.html", context, [context["intervals"], *graphs])


def _sections(
    compared: list[Side], results: list[list[TestComparison]], confidence: float, selected: str
) -> list[TestSection]:
    """All tests, with graphs if they are few, or those of the selected test."""
    by_test: dict[str, list[TestComparison]] = {}
    for result in results:
        for found in result:
            by_test.setdefault(found.test, []).append(found)
    ordered = names.in_order(by_test)
    few = ordered if len(ordered) <= MOST_DRAWN else []
    drawn = [selected] if selected else few
    latencies = read_latencies(compared, drawn) if drawn else {}
    durations = read_durations(compared, drawn) if drawn else {}
    return [
        _section(test, by_test[test], compared, confidence, latencies.get(test, []), durations.get(test), test in drawn)
        for test in ordered
    ]


def _section(
    test: str,
    found: list[TestComparison],
    compared: list[Side],
    confidence: float,
    latencies: list[Latencies],
    durations: Durations | None,
    drawn: bool,
) -> TestSection:
    everyone = values_by_side(compared, test)
    sets = {label: values for label, values in everyone.items() if values}
    unit = next((side.sets[test].unit for side in compared if test in side.sets), "")
    means = [abs(sum(values) / len(values)) for values in sets.values()]
    scale = scale_for(unit, max(means, default=0.0))
    files = {names.ministat_file(label, test): values for label, values in sets.items()}
    graphs = _graphs(test, everyone, scale, latencies, durations) if drawn and sets else []
    numbers = _numbers(found, compared, sets)
    measured = frozenset(key for side in compared for key in side.measured.get(test, ()))
    return TestSection(test, found, scale, numbers, files, graphs, latencies, durations, confidence, measured)


def _numbers(found: list[TestComparison], compared: list[Side], sets: dict[str, list[float]]) -> list[SideNumbers]:
    modes = {name: one for result in found for name, one in zip((result.a, result.b), result.result.modes, strict=True)}
    with_base = {result.b: result for result in found}
    return [
        SideNumbers(name, summarize(sets[name]) if name in sets else None, modes.get(name), with_base.get(name))
        for name in (side.label for side in compared)
    ]


def _graphs(
    test: str,
    sets: dict[str, list[float]],
    scale: Scale,
    latencies: list[Latencies],
    durations: Durations | None,
) -> list[Graph]:
    anchor, labels = names.anchor(test), list(sets)
    graphs = [
        Graph(f"samples-{anchor}", f"Samples of {test}", boxes_figure(sets, scale)),
        Graph(f"distribution-{anchor}", f"Distribution of {test}", distributions_figure(sets, scale)),
    ]
    for found in latencies:
        title = f"{found.kind.title}, of {test}"
        graphs.append(Graph(f"{found.kind.name}-{anchor}", title, latency_figure(found, labels)))
    if durations:
        figure = durations_figure(durations, labels)
        graphs.append(Graph(f"durations-{anchor}", f"Histogram of the times that connections of {test} took", figure))
    return graphs


def _extremes(compared: list[TestComparison]) -> tuple[TestComparison | None, TestComparison | None]:
    """The tests with the largest proven gain and loss."""
    judged = [(comparison.result.verdict, comparison) for comparison in compared]
    gains = [comparison for verdict, comparison in judged if verdict is Verdict.FASTER]
    losses = [comparison for verdict, comparison in judged if verdict is Verdict.SLOWER]
    return max(gains, key=_size, default=None), max(losses, key=_size, default=None)


def _size(comparison: TestComparison) -> float:
    effect = comparison.result.effect
    return abs(effect.interval.percent) if effect else 0.0


def _exchanged(compared: list[Side], run: Run | None) -> str:
    """The address of the same comparison with the two sides exchanged."""
    if len(compared) != 2:
        return ""
    a, b = compared
    if run:
        return reverse("reports:comparison", args=[run.pk, b.label, a.label])
    return f"?{urlencode({'base': b.address, 'with': a.address})}"


def sides_of_run(run: Run, a: str, b: str) -> list[Side]:
    """Return two variants of a run as sides; Http404 lists the existing ones."""
    return sides([(f"{run.pk}/{variant.name}", variant.name, [variant]) for variant in _variants(run, a, b)])


def selected_limits(request: HttpRequest) -> tuple[float, float]:
    """Return confidence and margin of an address, in percent. Raises ParameterError."""
    levels = {f"{level:g}": level for level in CONFIDENCE_LEVELS}
    confidence = levels.get(choice_in(request, "confidence", levels), DEFAULT_CONFIDENCE)
    return confidence, percent_in(request, "margin") or DEFAULT_MARGIN


def _variants(run: Run, *wanted: str) -> list[Variant]:
    variants = {variant.name: variant for variant in run.variants.select_related("run__plan", "run__testbed", "build")}
    if missing := [name for name in wanted if name not in variants]:
        raise Http404(f"Run {run.pk} has no variant “{missing[0]}”. Its variants are: {', '.join(variants)}.")
    return [variants[name] for name in wanted]
