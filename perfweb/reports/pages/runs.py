# SPDX-License-Identifier: BSD-2-Clause
"""The list of runs and the page of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from perfweb.figures.graphs import Graph, respond, selected_graphs
from perfweb.figures.interim import interim_figure
from perfweb.figures.plots import samples_figure, topic_figure
from perfweb.figures.scaling import ladders
from perfweb.figures.sentinel import sentinel_graphs
from perfweb.headers import revalidated
from perfweb.lab.models import Testbed
from perfweb.parameters import choice_in, number_in, text_in
from perfweb.reports.calibrations import trust_of
from perfweb.reports.overview import brief_rows, full_rows
from perfweb.reports.published import beside
from perfweb.reports.topics import known_topics
from perfweb.runs.judging import Measured, measured
from perfweb.runs.judging import pairs as pairs_of
from perfweb.runs.models import Artefact, ArtefactKind, Measurement, MeasurementState, Plan, Run, RunState
from perfweb.runs.summaries import summaries_of
from perfweb.verdicts import names
from perfweb.verdicts.doubts import doubted
from perfweb.verdicts.environment import changed_facts, host_table, tunable_rows
from perfweb.verdicts.outcome import outcome
from perfweb.verdicts.results import RunResults, TestResults, run_frame, run_results
from perfweb.verdicts.run_verdicts import PairVerdicts, verdicts, verdicts_of_run
from perfweb.verdicts.sentinels import Sentinel, read_sentinel
from perfweb.verdicts.tags import tag_of_database, tag_of_page

RUNS_PER_PAGE = 25
MOST_CELLS = 40
"""Max number of tests times variants that the page of a run shows in full, with graphs and outputs: more would be a
page of more than 100 kB. A single test is always shown in full.
"""

MOST_VERDICTS = 2
"""Max verdicts of a test in columns of their own; more are in the cells of the variants."""

IMPORTED = "imported"
STATES = {**dict(RunState.choices), IMPORTED: IMPORTED}
"""What the list of runs shows as the state of a run, by the value in its address."""

_TOPIC = "topic-"


@require_safe
@cache_control(no_cache=True)
@revalidated(tag_of_database)
def run_list(request: HttpRequest) -> HttpResponse:
    """Show the runs, newest first, of a `testbed`, a `plan` and in a `state` if the address has these; `before` shows
    those with a lower number.

    Pages go by number and not by count, because counting would read the whole table.
    """
    testbeds = list(Testbed.objects.order_by("name").values_list("name", flat=True))
    wanted = {
        "testbed": choice_in(request, "testbed", testbeds),
        "plan": _known_plan(request),
        "state": choice_in(request, "state", STATES),
    }
    selected = _selected(**wanted)
    runs = selected.select_related("plan", "testbed").prefetch_related("variants")
    before = number_in(request, "before")
    found = list((runs if before is None else runs.filter(number__lt=before))[: RUNS_PER_PAGE + 1])
    newer = selected.none() if before is None else selected.filter(number__gte=before).order_by("number")
    above = list(newer.values_list("number", flat=True)[: RUNS_PER_PAGE + 1])
    context = {
        "wanted": wanted,
        "narrowed": any(wanted.values()),
        "testbeds": testbeds,
        "states": STATES.items(),
        "rows": verdicts(found[:RUNS_PER_PAGE]),
        "older": found[RUNS_PER_PAGE - 1].pk if len(found) > RUNS_PER_PAGE else None,
        "newest": bool(above) and len(above) <= RUNS_PER_PAGE,
        "newer": above[-1] if len(above) > RUNS_PER_PAGE else None,
    }
    return render(request, "reports/run_list.html", context)


def _known_plan(request: HttpRequest) -> str:
    """Return the name of the plan in the address, "" if there is none. Raises ParameterError."""
    name = text_in(request, "plan")
    if name and not Plan.objects.filter(name=name).exists():
        choice_in(request, "plan", list(Plan.objects.order_by("name").values_list("name", flat=True).distinct()))
    return name


def _selected(testbed: str, plan: str, state: str) -> QuerySet[Run]:
    """Select the runs of a testbed, of a plan and in a state; an empty text selects all."""
    chosen = {"testbed__name": testbed, "plan__name": plan}
    runs = Run.objects.filter(**{lookup: name for lookup, name in chosen.items() if name})
    if state == IMPORTED:
        return runs.filter(imported__isnull=False)
    return runs.filter(state=state, imported__isnull=True) if state else runs


@require_safe
@cache_control(no_cache=True)
@revalidated(tag_of_page)
def run_detail(request: HttpRequest, number: int) -> HttpResponse:
    """Show the environment of a run, and every sample; `?topic=` has only the tests of a topic, `?test=` only one.

    A large number of tests is shown in brief.
    """
    run = find_run(number)
    found = measured([run.pk])[run.pk]
    chosen = _chosen(request, names.in_order(found.tests))
    brief = len(chosen.tests) > 1 and len(chosen.tests) * run.variants.count() > MOST_CELLS
    return (_in_brief if brief else _in_full)(request, run, found, chosen)


@dataclass(frozen=True)
class Chosen:
    """The tests of a run that the address selects, by topic or test."""

    tests: list[str]
    topic: str = ""
    test: str = ""


def _chosen(request: HttpRequest, tests: list[str]) -> Chosen:
    topics = names.by_topic(tests)
    test, topic = choice_in(request, "test", tests), choice_in(request, "topic", topics)
    if (drawn := text_in(request, "graph").removeprefix(_TOPIC)) in topics:
        topic = drawn  # the graph of a topic needs no other metric
    if test:
        return Chosen([test], names.topic(test), test)
    return Chosen(topics[topic] if topic else tests, topic)


def _in_full(request: HttpRequest, run: Run, found: Measured, chosen: Chosen) -> HttpResponse:
    """Every chosen test with its samples: the graphs alone if the address selects these."""
    results = run_results(run, chosen.tests)
    topics = _topics(results, alone=bool(text_in(request, "graph")))
    drawn = [(test, _test_graph(test), _interim_graph(test)) for test in results.tests]
    scaled = ladders(results.tests)
    sentinel = read_sentinel(run, chosen.tests)
    watched = sentinel_graphs(sentinel) if sentinel else []
    graphs = [
        *(graph for _, graph in topics),
        *(graph for _, *two in drawn for graph in two),
        *(ladder.graph for ladder in scaled),
        *(graph for _, graph in watched),
    ]
    if answer := selected_graphs(request, graphs):
        return answer
    pairs = doubted(verdicts_of_run(run, results.variants, summaries_of([run])[run.pk], found), sentinel)
    context = {
        **_frame(run, results, pairs, sentinel),
        "failures": len(results.failures),
        "voids": results.voids,
        "overview": full_rows(results, pairs),
        "sentinel_graphs": watched,
        "verdicts_in_cells": len(pairs) > MOST_VERDICTS,
        "chosen": chosen,
        "known_topics": list(names.by_topic(names.in_order(found.tests))),
        "topics": topics,
        "ladders": scaled,
        "tests": drawn,
    }
    return respond(request, "reports/run.html", context, graphs)


def _in_brief(request: HttpRequest, run: Run, found: Measured, chosen: Chosen) -> HttpResponse:
    """Means and verdicts of the chosen tests, read from the summaries. The samples of a topic are drawn on its page."""
    results = run_results(run, chosen.tests, samples_only=True) if chosen.topic else run_frame(run)
    topics = _topics(results, alone=True)
    graphs = [graph for _, graph in topics]
    if answer := selected_graphs(request, graphs):
        return answer
    kept = summaries_of([run])[run.pk]
    sentinel = read_sentinel(run, chosen.tests)
    pairs = doubted(verdicts_of_run(run, results.variants, kept, found), sentinel)
    bad, voids = _not_good(run)
    by_topic = names.by_topic(names.in_order(found.tests))
    context = {
        **_frame(run, results, pairs, sentinel),
        "failures": bad.total(),
        "voids": voids,
        "brief": brief_rows(results.variants, chosen.tests, kept, bad, pairs),
        "pictures": [] if chosen.topic else [(name, len(of), f"{_TOPIC}{name}") for name, of in by_topic.items()],
        "topics": topics,
        "chosen": chosen,
        "known_topics": list(by_topic),
    }
    return respond(request, "reports/run.html", context, graphs)


def _not_good(run: Run) -> tuple[Counter[tuple[int, str]], int]:
    """Read how many measurements are not good, by variant's key and test, and how many samples are void, without the
    sentinel's: one query.
    """
    measured = (
        Measurement.objects.filter(boot__run=run, boot__sentinel=False)
        .exclude(state=MeasurementState.OK, voids=0)
        .order_by()
    )
    rows = list(measured.values_list("boot__variant_id", "test", "state", "voids"))
    failures = Counter((variant, test) for variant, test, state, _ in rows if state != MeasurementState.OK)
    return failures, sum(voids for *_, voids in rows)


def _frame(run: Run, results: RunResults, pairs: Sequence[PairVerdicts], sentinel: Sentinel | None) -> dict[str, Any]:
    """The parts of a run's page besides its results."""
    hosts, host_facts = host_table(run)
    earlier, changes = changed_facts(run)
    return {
        "run": run,
        "results": results,
        "pairs": pairs,
        "sentinel": sentinel,
        "any_doubted": any(test.lean is not None for pair in pairs for test in pair.tests),
        "any_boots_differ": any(test.boots_differ for pair in pairs for test in pair.tests),
        "trust": trust_of(run, [test.test for pair in pairs for test in pair.tests]) if pairs else None,
        "published": beside(run),
        "all_topics": known_topics(),
        "tunables": tunable_rows(results),
        "hosts": hosts,
        "host_facts": host_facts,
        "earlier": earlier,
        "changes": changes,
        "transitions": run.transitions.all(),
        "patches": _patches(run),
        "outcome": outcome(run),
    }


def _patches(run: Run) -> Iterable[Artefact]:
    """The sources of variants besides commits; plans without a source, which are most, cost no query."""
    patched = "source:" in run.plan.text
    return run.artefacts.filter(kind=ArtefactKind.PATCH).defer("content") if patched else ()


def find_run(number: int) -> Run:
    """Return the run with its plan and testbed, or raise a 404 with a link to all runs."""
    try:
        return Run.objects.select_related("plan", "testbed", "imported").get(pk=number)
    except Run.DoesNotExist:
        raise Http404(f"There is no run {number}. The list of runs shows those that there are.") from None


def _topics(results: RunResults, *, alone: bool) -> list[tuple[str, Graph]]:
    """Each topic with its graph. With one variant, or one test in a topic, the graph would repeat the samples of the
    tests, so it is left out unless these graphs stand `alone`.
    """
    compared = pairs_of(results.variants)
    if not compared:
        return []
    by_name = {test.name: test for test in results.tests}
    drawn = [
        (topic, topic_figure([by_name[test] for test in tests], compared[0][0].pk))
        for topic, tests in names.by_topic(by_name).items()
        if alone or len(tests) > 1
    ]
    return [
        (topic, Graph(f"{_TOPIC}{topic}", f"{topic}: every sample", figure))
        for topic, figure in drawn
        if figure["data"]
    ]


def _test_graph(test: TestResults) -> Graph | None:
    if not test.metrics:
        return None
    label = f"Every sample of {test.name}, boot by boot"
    return Graph(f"test-{names.anchor(test.name)}", label, samples_figure(test.metrics[0]))


def _interim_graph(test: TestResults) -> Graph | None:
    figure = interim_figure(test)
    label = f"Throughput within the samples of {test.name}"
    return Graph(f"interim-{names.anchor(test.name)}", label, figure) if figure else None
