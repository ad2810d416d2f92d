# SPDX-License-Identifier: BSD-2-Clause
"""Rows through COPY are the same rows."""

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfweb.runs.bulk import copy_rows, copy_samples, copy_values
from perfweb.runs.models import Artefact, Direction, Measurement, Sample, Variant
from tests.factories import START, create_queued_run, create_run

pytestmark = pytest.mark.django_db


def _samples(count: int, metric: str = "bulk") -> list[Sample]:
    measurement = Measurement.objects.all()[0]
    return [
        Sample(
            measurement=measurement, index=index, metric=metric, value=index / 7, unit="us", direction="lower",
            discarded=index == 0, seconds=1.0,
        )
        for index in range(count)
    ]  # fmt: skip


def test_all_values_arrive_with_all_their_digits() -> None:
    create_run(tests=["tcp.rr/host-host/ipv4"])
    made = _samples(1000)
    assert copy_rows(iter(made)) == len(made)
    found = Sample.objects.filter(metric="bulk").order_by("index")
    assert [(row.index, row.value, row.discarded) for row in found] == [
        (row.index, row.value, row.discarded) for row in made
    ]


def test_texts_json_and_generated_columns_arrive() -> None:
    run = create_queued_run()
    tunables = {"net.isr.dispatch": 'a "quoted"\tvalue\\N', "x": "ü"}
    copy_rows([Variant(run=run, name="direct", position=0, target="stack", tunables=tunables)])
    (variant,) = run.variants.all()
    assert variant.tunables == tunables
    assert variant.build is None
    assert "quoted" in variant.knobs


PLAIN = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=24)


@given(rows=st.lists(st.tuples(PLAIN, st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=20))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_copied_is_read_again(rows: list[tuple[str, float]]) -> None:
    if not Measurement.objects.exists():
        create_run(tests=["tcp.rr/host-host/ipv4"])
    measurement = Measurement.objects.all()[0].pk
    with transaction.atomic():
        copy_samples(
            (measurement, index, "bulk", value, unit, "lower", False, 1.0, 3 * unit)
            for index, (unit, value) in enumerate(rows)
        )
        found = Sample.objects.filter(metric="bulk").order_by("index")
        assert list(found.values_list("unit", "value", "void")) == [(unit, value, 3 * unit) for unit, value in rows]
        transaction.set_rollback(True)


def test_bytes_times_and_numbers_of_numpy_are_copied() -> None:
    run = create_run(tests=["tcp.rr/host-host/ipv4"])
    content = bytes(range(256))
    text = Artefact(run=run, kind="boot-log", name="all", content=content, size=256, sha256="", created=START)
    copy_rows([text])
    found = Artefact.objects.get(name="all")
    assert (bytes(found.content), found.created) == (content, START)
    row = (Measurement.objects.all()[0].pk, 0, "bulk", np.float64(1 / 3), "us", Direction.LOWER, True, 1.0, "")
    copy_samples([row])
    sample = Sample.objects.get(metric="bulk")
    assert (sample.value, sample.direction, sample.discarded) == (1 / 3, "lower", True)


def test_what_cannot_be_copied_is_named() -> None:
    with pytest.raises(TypeError, match="complex cannot be copied"), transaction.atomic():
        copy_values(Sample, ["value"], [[1j]])


def test_constraints_hold_and_nothing_is_no_error() -> None:
    create_run(tests=["tcp.rr/host-host/ipv4"])
    (bad,) = _samples(1)
    bad.value = float("nan")
    with pytest.raises(IntegrityError), transaction.atomic():
        copy_rows([bad])
    assert copy_rows([]) == 0
