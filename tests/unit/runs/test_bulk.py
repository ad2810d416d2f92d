# SPDX-License-Identifier: BSD-2-Clause
"""Rows through COPY are the same rows."""

import pytest
from django.db import IntegrityError, transaction

from perfweb.runs.bulk import copy_rows
from perfweb.runs.models import Measurement, Sample, Variant
from tests.factories import create_queued_run, create_run

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


def test_constraints_hold_and_nothing_is_no_error() -> None:
    create_run(tests=["tcp.rr/host-host/ipv4"])
    (bad,) = _samples(1)
    bad.value = float("nan")
    with pytest.raises(IntegrityError), transaction.atomic():
        copy_rows([bad])
    assert copy_rows([]) == 0
