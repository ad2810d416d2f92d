# SPDX-License-Identifier: BSD-2-Clause
"""Testbeds that take no runs: in maintenance, in quarantine, or unfit a moment ago."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from perfweb.accounts.models import Entry, Role, User
from perfweb.lab import outages
from perfweb.lab import services as lab
from perfweb.lab.models import HealthCheck, Outage, OutageKind, Testbed
from perfweb.lab.outages import OutageError
from tests.factories import create_testbed

pytestmark = pytest.mark.django_db


@pytest.fixture
def testbed() -> Testbed:
    return create_testbed("bench")


def test_maintenance_keeps_runs_away_until_it_is_over(testbed: Testbed) -> None:
    outages.begin(testbed, OutageKind.MAINTENANCE, " new cables ", "ann")
    assert lab.acquire(testbed, "run 1") is None
    with pytest.raises(OutageError, match=r"testbed bench is in maintenance by ann since .*: new cables already"):
        outages.begin(testbed, OutageKind.MAINTENANCE, "again", "bob")
    (outage,) = outages.end(testbed, "bob")
    outage.refresh_from_db()
    assert (outage.ended_by, outage.ended is not None) == ("bob", True)
    assert lab.acquire(testbed, "run 1") is not None
    with pytest.raises(OutageError, match="neither in maintenance nor in quarantine"):
        outages.end(testbed, "bob")


def test_maintenance_leaves_the_run_alone_that_has_the_testbed(testbed: Testbed) -> None:
    lease = lab.acquire(testbed, "run 1")
    assert lease is not None
    outages.begin(testbed, OutageKind.MAINTENANCE, "new cables", "ann")
    assert lab.renew(lease.pk) is not None


def test_faults_in_a_row_lead_into_quarantine(testbed: Testbed) -> None:
    for _ in range(settings.QUARANTINE_FAULTS - 1):
        outages.failed(testbed, "dut: unreachable")
    outages.worked(testbed)
    for _ in range(settings.QUARANTINE_FAULTS - 1):
        outages.failed(testbed, "dut: unreachable")
    assert not Outage.objects.exists()
    outages.failed(testbed, "dut: no room")
    outages.failed(testbed, "dut: no room")
    outage = Outage.objects.get()
    assert (outage.kind, outage.by) == ("quarantine", "perfweb")
    assert outage.why == "3 faults in a row; the last: dut: no room"
    assert lab.acquire(testbed, "run 1") is None
    outages.end(testbed, "ann")
    testbed.refresh_from_db()
    assert testbed.faults == 0
    assert lab.acquire(testbed, "run 1") is not None


def test_an_unfit_testbed_is_left_alone_for_a_while(testbed: Testbed) -> None:
    outages.checked(testbed, "run 1", {}, ["dut: no room"])
    assert lab.acquire(testbed, "run 2") is None
    HealthCheck.objects.update(at=timezone.now() - timedelta(seconds=settings.UNFIT_SECONDS + 1))
    assert lab.acquire(testbed, "run 2") is not None


def test_a_maintainer_takes_it_out_and_puts_it_back_on_its_page(client: Client, testbed: Testbed) -> None:
    page = "/testbeds/bench/service/"
    client.force_login(User.objects.create_user("ann", role=Role.MAINTAINER))
    assert "Take out of service" in client.get(page).content.decode()
    assert client.post(page, {"why": " "}).status_code == 409
    assert client.post(page, {"why": "new cables"}).headers["Location"] == "/testbeds/bench/"
    assert Outage.objects.get(ended=None).by == "ann"
    answer = client.post(page, {"why": "again"})
    assert answer.status_code == 409
    assert "new cables already" in answer.content.decode()
    assert client.post(page, {"back": "1"}).status_code == 302
    assert not Outage.objects.filter(ended=None).exists()
    assert client.post(page, {"back": "1"}).status_code == 409
    assert client.get("/testbeds/none/service/").status_code == 404
    assert list(Entry.objects.filter(action="maintain testbed").values_list("detail", flat=True).order_by("pk")) == [
        "out of service: new cables", "back in service"
    ]  # fmt: skip


def test_who_is_no_maintainer_may_not(client: Client, testbed: Testbed) -> None:
    client.force_login(User.objects.create_user("bob", role=Role.SUBMITTER))
    assert client.post("/testbeds/bench/service/", {"why": "new cables"}).status_code == 403
    assert lab.acquire(testbed, "run 1") is not None


def test_commands(testbed: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("testbed", "bench", "out", "new", "cables")
    assert ": new cables" in capsys.readouterr().out
    call_command("testbed", "bench", "back")
    assert capsys.readouterr().out == "testbed bench is back in service, from maintenance\n"
    with pytest.raises(CommandError, match="say why"):
        call_command("testbed", "bench", "out")
    with pytest.raises(CommandError, match="registered: bench"):
        call_command("testbed", "rack", "back")
