# SPDX-License-Identifier: BSD-2-Clause
"""Code that uses the time of day survives a clock that is put back."""

from datetime import timedelta

import pytest
from django.utils import timezone

from perfweb.lab import outages, services
from perfweb.lab.models import HealthCheck, Lease, Testbed
from perfweb.runs.queue import machine_time
from runners.clocks import StepDetector
from tests.factories import create_testbed

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def test_clock_that_is_not_set_renews_nothing() -> None:
    detector = StepDetector()
    lease = services.acquire(create_testbed(), "run 1")
    assert lease is not None
    assert [detector.check() for _ in range(3)] == [0.0, 0.0, 0.0]
    assert Lease.objects.get().expires == lease.expires


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_step_of_the_clock_renews_each_lease(step: timedelta) -> None:
    """After a step, earlier times are as far from now as the step is long."""
    detector = StepDetector()
    services.acquire(create_testbed(), "run 1")
    detector.check()
    assert detector._seen is not None
    detector._seen = (detector._seen[0] - step, detector._seen[1])
    Lease.objects.update(expires=timezone.now() - step)
    assert detector.check() == pytest.approx(step.total_seconds(), abs=60)
    assert abs(Lease.objects.get().expires - timezone.now()) < timedelta(seconds=60)
    assert detector.check() == 0.0


def test_testbed_that_was_unfit_before_the_clock_was_put_back_takes_runs() -> None:
    testbed = create_testbed()
    outages.checked(testbed, "run 1", {}, ["a disk is full"])
    assert Testbed.objects.filter(outages.unavailable()).exists()
    HealthCheck.objects.update(at=timezone.now() + HOUR)
    assert not Testbed.objects.filter(outages.unavailable()).exists()


def test_lease_that_ended_before_it_began_is_no_negative_machine_time() -> None:
    lease = services.acquire(create_testbed(), "run 1", account="ada")
    assert lease is not None
    Lease.objects.update(released=timezone.now() - HOUR)
    assert machine_time(timezone.now()) == {"ada": 0.0}
