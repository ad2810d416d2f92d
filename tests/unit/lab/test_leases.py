# SPDX-License-Identifier: BSD-2-Clause
"""A testbed has one holder at a time."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from perfweb.lab import services as lab
from perfweb.lab.models import Lease
from tests.factories import create_testbed

pytestmark = pytest.mark.django_db


def acquired(holder: str = "run 1", worker: str = "") -> Lease:
    lease = lab.acquire(create_testbed(), holder, worker)
    assert lease is not None
    return lease


def test_second_holder_waits_for_the_release() -> None:
    lease = acquired()
    assert lab.acquire(create_testbed(), "run 2") is None
    lab.release(lease)
    lab.release(lease)
    acquired("run 2")


def test_expired_lease_still_holds_until_somebody_cleans_up() -> None:
    lease = acquired()
    Lease.objects.update(expires=timezone.now() - timedelta(hours=1))
    assert lab.acquire(create_testbed(), "run 2") is None
    assert lease.released is None


def test_heartbeat_renews_and_learns_of_the_end() -> None:
    lease = acquired()
    Lease.objects.update(expires=timezone.now())
    renewed = lab.renew(lease.pk)
    assert renewed is not None
    assert renewed.expires > timezone.now()
    lab.release(lease)
    assert lab.renew(lease.pk) is None


def test_recall_reaches_only_that_worker() -> None:
    mine = acquired(worker="celery@mine")
    assert lab.recall("celery@other") == 0
    assert lab.recall("celery@mine") == 1
    mine.refresh_from_db()
    assert mine.recalled


def test_database_refuses_a_second_lease() -> None:
    lease = acquired()
    with pytest.raises(IntegrityError, match="one_lease_per_testbed"), transaction.atomic():
        Lease.objects.create(testbed=lease.testbed, holder="intruder", expires=timezone.now())
