# SPDX-License-Identifier: BSD-2-Clause
"""The generated run keeps the invariants of real ones."""

import pytest

from perfweb.runs.catalogue import TESTS
from perfweb.runs.models import Measurement, Sample
from tests.factories import DEMO_TESTS, TYPICAL, create_run

pytestmark = pytest.mark.django_db


def test_ten_counted_samples_per_variant_and_test() -> None:
    run = create_run()
    for variant in run.variants.all():
        for test in DEMO_TESTS:
            mine = Sample.objects.filter(measurement__boot__variant=variant, measurement__test=test)
            assert mine.counted().count() == 10
            assert mine.primary().count() == 14


def test_failed_measurement_has_output_and_no_samples() -> None:
    run = create_run(failed_test="udp.rr/host-host/ipv4")
    failed = Measurement.objects.filter(boot__run=run, state="failed")
    assert failed.count() == 2
    assert not Sample.objects.filter(measurement__in=failed).exists()
    assert all(measurement.artefacts.exists() for measurement in failed)


def test_every_test_of_the_catalogue_can_be_made_up() -> None:
    assert {test.measure.metric for test in TESTS.values()} <= TYPICAL.keys()
