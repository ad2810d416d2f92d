# SPDX-License-Identifier: BSD-2-Clause
"""Downloads: tables, archives and texts of runs, comparisons and series."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from perfweb.figures.timelines import Window
from perfweb.parameters import ParameterError, text_in, texts_in
from perfweb.rawdata import bodies, selections
from perfweb.rawdata.archives import Member
from perfweb.rawdata.bodies import StillRunningError, archive_body, table_body
from perfweb.rawdata.downloads import PLAIN_TEXT, send, text_body
from perfweb.rawdata.judgements import verdicts_table
from perfweb.rawdata.selections import Selection
from perfweb.reports.pages.comparison import selected_limits, sides_of_run
from perfweb.reports.pages.runs import find_run
from perfweb.reports.pages.timeline import selected_series, selected_window
from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Artefact
from perfweb.verdicts.doubts import run_pairs, side_comparisons
from perfweb.verdicts.sides import Side, SideError, read_sides


@require_safe
def run_samples(request: HttpRequest, number: int, form: str) -> HttpResponseBase:
    """Send all samples of a run."""
    selection = selections.of_run(find_run(number))
    return send(request, table_body(selection, "samples", form, selections.samples_table(selection)))


@require_safe
def run_interim(request: HttpRequest, number: int, form: str) -> HttpResponseBase:
    """Send the throughput within the samples of a run."""
    selection = selections.of_run(find_run(number))
    return send(request, table_body(selection, "interim", form, selections.interim_table(selection)))


@require_safe
def run_verdicts(request: HttpRequest, number: int, form: str) -> HttpResponseBase:
    """Send the verdicts of a run for its baseline and each other variant."""
    run = find_run(number)
    selection = selections.of_run(run)
    pairs = run_pairs(run, counted_samples([run])[run.pk])
    table = verdicts_table(comparison for pair in pairs for comparison in pair.compared)
    return send(request, table_body(selection, "verdicts", form, table))


@require_safe
def run_json(request: HttpRequest, number: int) -> HttpResponseBase:
    """Send everything about a run except the texts of artefacts, as JSON."""
    run = find_run(number)
    return send(request, bodies.document_body(selections.of_run(run), run))


@require_safe
def run_archive(request: HttpRequest, number: int) -> HttpResponseBase:
    """Send everything of a run as a tar archive, its replay bundle."""
    run = find_run(number)
    selection = selections.of_run(run)
    return _archive(request, selection, partial(bodies.run_members, selection, run))


@require_safe
def plan_yaml(request: HttpRequest, number: int) -> HttpResponseBase:
    """Send the plan of a run as it was submitted."""
    plan = find_run(number).plan
    return send(request, text_body("plan.yaml", plan.text.encode(), plan.sha256, plan.created))


@require_safe
def ministat_input(request: HttpRequest, number: int, variant: str, test: str) -> HttpResponseBase:
    """Send the samples that enter the statistics of one test on one variant, one number on a line."""
    run = find_run(number)
    counted = counted_samples([run])[run.pk]
    keys = [found.pk for found in run.variants.all() if found.name == variant]
    samples = counted.sets.get((keys[0], test)) if keys else None
    if samples is None:
        raise Http404(f"Run {number} has no samples of “{test}” on a variant “{variant}”; its page lists what it has.")
    content = bodies.ministat_lines(samples.values)
    modified = run.ended if run.is_over else None
    return send(request, text_body(f"{variant}.txt", content, hashlib.sha256(content).hexdigest(), modified))


@require_safe
def artefact(request: HttpRequest, key: int) -> HttpResponseBase:
    """Send one artefact as plain text, byte for byte: a browser interprets nothing in it."""
    try:
        found = Artefact.objects.get(pk=key)
    except Artefact.DoesNotExist:
        raise Http404(f"There is no artefact {key}. The page of a run links to those that it has.") from None
    return send(request, text_body(found.name, bytes(found.content), found.sha256, found.created))


@require_safe
def comparison_samples(
    request: HttpRequest, form: str, number: int | None = None, a: str = "", b: str = ""
) -> HttpResponseBase:
    """Send all samples of the variants of a comparison."""
    _, selection = compared(request, number, a, b)
    return send(request, table_body(selection, "samples", form, selections.samples_table(selection)))


@require_safe
def comparison_verdicts(
    request: HttpRequest, form: str, number: int | None = None, a: str = "", b: str = ""
) -> HttpResponseBase:
    """Send the verdicts of a comparison, at the confidence and with the margin of its address."""
    sides, selection = compared(request, number, a, b)
    limits = selected_limits(request)
    table = verdicts_table(side_comparisons(sides, *limits).everything)
    return send(request, table_body(selection, "verdicts", form, table, f"{_named(sides)} {limits}"))


@require_safe
def comparison_archive(request: HttpRequest, number: int | None = None, a: str = "", b: str = "") -> HttpResponseBase:
    """Send everything of a comparison as a tar archive."""
    sides, selection = compared(request, number, a, b)
    limits = selected_limits(request)
    members = partial(bodies.side_members, selection, sides, *limits)
    return _archive(request, selection, members, f"{_named(sides)} {limits}")


def compared(request: HttpRequest, number: int | None, a: str, b: str) -> tuple[list[Side], Selection]:
    """Return the sides of a comparison of one run, or those that the address names, and their measurements."""
    if number is not None:
        run = find_run(number)
        sides = sides_of_run(run, a, b)
        return sides, selections.of_sides(sides, run)
    try:
        sides = read_sides([text_in(request, "base"), *texts_in(request, "with")])
    except SideError as error:
        raise ParameterError("base, with", f"{error}.") from None
    return sides, selections.of_sides(sides, None)


def _named(sides: Sequence[Side]) -> str:
    return " ".join(side.address for side in sides)


@require_safe
def series_table(request: HttpRequest, test: str, form: str) -> HttpResponseBase:
    """Send the summaries that a timeline draws; the address takes what that of the timeline takes."""
    window, wanted, selection = selected_measurements(request, test)
    table = selections.series_table(test, window, wanted)
    return send(request, table_body(selection, "series", form, table, f"{window} {wanted}"))


@require_safe
def series_samples(request: HttpRequest, test: str, form: str) -> HttpResponseBase:
    """Send the samples from which a timeline comes."""
    window, wanted, selection = selected_measurements(request, test)
    table = selections.samples_table(selection)
    return send(request, table_body(selection, "samples", form, table, f"{window} {wanted}"))


@require_safe
def series_archive(request: HttpRequest, test: str) -> HttpResponseBase:
    """Send everything of a test over time as a tar archive."""
    window, wanted, selection = selected_measurements(request, test)
    members = partial(bodies.series_members, selection, test, window, wanted)
    return _archive(request, selection, members, f"{window} {wanted}")


def selected_measurements(request: HttpRequest, test: str) -> tuple[Window, list[str], Selection]:
    """Return the part of a timeline that the address names. Raises ParameterError."""
    window, wanted = selected_window(request), selected_series(request, test)
    selection = selections.of_series(test, window, wanted)
    if not selection.runs.exists():
        raise Http404(f"“{test}” was not measured here. The list of tests has all names.")
    return window, wanted, selection


def _archive(
    request: HttpRequest, selection: Selection, members: Callable[[], Iterable[Member]], parameters: str = ""
) -> HttpResponseBase:
    try:
        return send(request, archive_body(selection, members, parameters))
    except StillRunningError as error:
        return HttpResponse(f"{error}\n", PLAIN_TEXT, status=409)
