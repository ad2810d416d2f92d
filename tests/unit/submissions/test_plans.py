# SPDX-License-Identifier: BSD-2-Clause
"""Plans that compare a patch with its base."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfweb.runs.planfile import read_plan
from perfweb.submissions.plans import (
    BUILD_SECONDS,
    MATRICES,
    KnobError,
    machine_seconds,
    parts,
    plan_text,
    read_knobs,
)


@pytest.mark.parametrize("name", MATRICES)
def test_every_matrix_makes_a_plan(name: str) -> None:
    knobs = {} if name.startswith("linux") else {"net.isr.dispatch": "direct"}
    spec = read_plan(plan_text(MATRICES[name], "x", "A title: “x” # y", knobs, 1, each=False))
    assert (spec.title, spec.baseline, spec.order) == ("A title: “x” # y", "base", "abba")
    assert [(variant.name, variant.source) for variant in spec.variants] == [("base", "base"), ("patch", "patch")]
    assert [variant.tunables for variant in spec.variants] == [knobs, knobs]
    assert [test.name for test in spec.tests] == list(MATRICES[name].tests)
    assert 60 < machine_seconds(spec) < 3600


@pytest.mark.parametrize("name", MATRICES)
def test_the_parts_of_a_plan_are_all_that_runs(name: str) -> None:
    spec = read_plan(plan_text(MATRICES[name], "x", "t", {}, 1, each=False))
    found = parts(spec)
    assert sorted(test for part in found for test in part.tests) == sorted(MATRICES[name].tests)
    for part in found:
        assert part.order[:4] == ["base", "patch", "patch", "base"][: 2 * spec.boots]
        assert len(part.order) == 2 * spec.boots
        assert part.samples * spec.boots >= spec.samples
    assert sum(part.seconds for part in found) + 2 * BUILD_SECONDS == pytest.approx(machine_seconds(spec), abs=1)


def test_series_patch_by_patch() -> None:
    spec = read_plan(plan_text(MATRICES["tcp-quick"], "x", "t", {}, 3, each=True))
    assert [variant.source for variant in spec.variants] == ["base", "patch 1", "patch 2", "patch 3"]


def test_knobs() -> None:
    assert read_knobs(' net.isr.dispatch = "direct" \n\nkern.x=a b\n') == {
        "net.isr.dispatch": "direct",
        "kern.x": "a b",
    }


@pytest.mark.parametrize("text", ["x", "x=1", "a.b=", "a.b=1\na.b=2", "a.b=“", "a.b=$(id)"])
def test_what_is_no_knob(text: str) -> None:
    with pytest.raises(KnobError):
        read_knobs(text)


@given(st.text(max_size=60))
def test_knobs_of_any_text_make_a_plan_or_a_sentence(text: str) -> None:
    try:
        knobs = read_knobs(text)
    except KnobError:
        return
    spec = read_plan(plan_text(MATRICES["tcp-quick"], "x", "t", knobs, 1, each=False))
    assert spec.variants[0].tunables == knobs
