# SPDX-License-Identifier: BSD-2-Clause
"""A testbed has one holder at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from perfweb.lab import services as lab
from perfweb.lab.models import Lease, Testbed
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


@pytest.mark.django_db(transaction=True)
def test_who_comes_second_does_not_wait_for_the_first_to_make_up_its_mind() -> None:
    testbed = create_testbed()
    locked, tried = threading.Event(), threading.Event()

    def first() -> None:
        try:
            with transaction.atomic():
                Testbed.objects.select_for_update(no_key=True).get(pk=testbed.pk)
                locked.set()
                tried.wait()
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool:
        busy = pool.submit(first)
        locked.wait()
        try:
            assert lab.acquire(testbed, "run 2") is None
        finally:
            tried.set()
        busy.result()
    acquired("run 3")


def test_expired_lease_still_holds_until_the_host_is_cleaned() -> None:
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


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_jumps_neither_ends_a_lease_nor_keeps_it(hours: int, monkeypatch: pytest.MonkeyPatch) -> None:
    true = timezone.now
    lease = acquired()
    monkeypatch.setattr(timezone, "now", lambda: true() + timedelta(hours=hours))
    assert not lab.expired().exists()
    assert lab.renew(lease.pk) is not None
    assert not lab.expired().exists()
    Lease.objects.update(expires=true() - timedelta(seconds=1))
    assert lab.expired().get() == lease
