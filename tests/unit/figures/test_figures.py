# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import json

import pytest

from perfweb.figures.plots import intervals_figure, samples_figure
from perfweb.runs.judging import counted_samples, pairs
from perfweb.runs.models import Measurement, Run, Sample
from perfweb.verdicts.comparisons import compare_variants
from perfweb.verdicts.results import run_results
from tests.factories import DEMO_TESTS, create_run, make_void

pytestmark = pytest.mark.django_db


def test_every_sample_is_a_point_and_discarded_ones_are_hollow(run: Run) -> None:
    test = run_results(run).tests[0]
    traces = samples_figure(test.metrics[0])["data"]
    samples = Sample.objects.primary().filter(measurement__test=test.name)
    assert sum(len(trace["y"]) for trace in traces) == samples.count()
    hollow = sum(len(trace["y"]) for trace in traces if trace["marker"]["symbol"].endswith("-open"))
    assert hollow == samples.filter(discarded=True).count()


def test_a_void_sample_is_hollow_and_labelled_void(run: Run) -> None:
    measurement = Measurement.objects.filter(boot__run=run, test=run_results(run).tests[0].name)[0]
    make_void(measurement, 2, "steal: 12 %")
    traces = samples_figure(run_results(run).tests[0].metrics[0])["data"]
    (found,) = [(trace, text) for trace in traces for text in trace["text"] if text.endswith("(void)")]
    assert found[0]["marker"]["symbol"].endswith("-open")
    assert "sample 3: " in found[1]


def test_boots_stand_in_the_order_of_the_run(run: Run) -> None:
    figure = samples_figure(run_results(run).tests[0].metrics[0])
    assert figure["layout"]["xaxis"]["ticktext"] == ["0", "1", "2", "3"]
    for trace in figure["data"]:
        assert all(0 <= x <= 4 for x in trace["x"])


def test_intervals_are_sorted_and_skip_what_has_no_difference(run: Run) -> None:
    ((a, b),) = pairs(run.variants.all())
    compared = compare_variants(a, b, counted_samples([run])[run.pk], 95)
    figure = intervals_figure(compared)
    order = figure["layout"]["yaxis"]["categoryarray"]
    percents = {comparison.test: comparison.result.effect for comparison in compared}
    assert len(order) == len(DEMO_TESTS) - 1
    drawn = [found.interval.percent for name in order if (found := percents[name])]
    assert drawn == sorted(drawn, key=lambda value: value or 0)


def test_colours_are_left_to_the_style_sheet() -> None:
    run = create_run(tests=DEMO_TESTS[:1])
    figure = json.dumps(samples_figure(run_results(run).tests[0].metrics[0]))
    assert "color" not in figure
    assert "series-1" in figure
