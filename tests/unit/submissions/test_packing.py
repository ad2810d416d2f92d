# SPDX-License-Identifier: BSD-2-Clause
"""Sources of kernels are packed by the messenger: a request only names them, and its run waits for them."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from perfweb.accounts.actors import Actor
from perfweb.builds import mirrors, packing
from perfweb.builds.kinds import LINUX
from perfweb.builds.models import Build, Mirror, Packing
from perfweb.builds.services import source_store
from perfweb.builds.sources import archive_path
from perfweb.faults.models import Fault
from perfweb.lab.models import Testbed
from perfweb.lab.origins import Origin
from perfweb.runs import queue, states
from perfweb.runs.models import Run
from perfweb.submissions import services
from perfweb.submissions.models import Submission
from perfweb.submissions.status import status_of
from tests.checkouts import Checkout
from tests.factories import create_testbed
from tests.unit.submissions.conftest import WANTED, five

KERNEL = replace(WANTED, testbed="counted", matrix=LINUX.matrix, knobs="", mirror="linux")


@pytest.fixture
def counter(repository: Checkout) -> Testbed:
    mirrors.fetch(Mirror.objects.create(name="linux", url=str(repository.tree), kind="linux"))
    return create_testbed("counted", origin=Origin.COUNTED)


@pytest.fixture
def submitted(counter: Testbed, maintainer: Actor, diff: bytes) -> Submission:
    return services.submit(maintainer, diff, KERNEL)


def archives(run: Run) -> list[Path]:
    names = run.variants.order_by("position").values_list("build__source_sha256", flat=True)
    return [archive_path(source_store(), name) for name in names]


def file_of(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as opened:
        file = opened.extractfile(name)
        assert file is not None
        return file.read()


def test_a_request_packs_no_kernel_and_its_run_waits(submitted: Submission, counter: Testbed, client: Client) -> None:
    run = submitted.runs.get()
    assert len(archives(run)) == 2
    assert not any(archive.exists() for archive in archives(run))
    assert status_of(submitted).words == "Queued, sources are being packed"
    page = " ".join(client.get(f"/submissions/{submitted.number}/").content.decode().split())
    assert "queued: its sources are being packed" in page
    assert (queue.first(counter), [place.run for place in queue.forecast(counter)]) == (None, [run])
    with pytest.raises(states.TestbedBusyError, match=r"stays queued until its sources are packed$"):
        states.lease(run.number)
    packing.pack_all()
    assert [b"five;" in file_of(archive, "linux/stack/net/if.c") for archive in archives(run)] == [False, True]
    assert (Packing.objects.count(), queue.first(counter), status_of(submitted).words) == (0, run, "Queued")
    assert states.lease(run.number).lease is not None


def test_the_next_run_starts_while_the_sources_of_another_are_packed(
    submitted: Submission, counter: Testbed, maintainer: Actor, repository: Checkout
) -> None:
    packing.pack_all()
    later = services.submit(maintainer, five(repository, "cinq"), KERNEL)
    assert Packing.objects.get().patches == 1
    assert queue.first(counter) == submitted.runs.get()
    states.cancel(submitted.runs.get().number, "for the test")
    assert queue.first(counter) is None
    packing.pack_all()
    assert queue.first(counter) == later.runs.get()


def test_sources_that_cannot_be_packed_end_their_run_with_the_reason(
    submitted: Submission, counter: Testbed, maintainer: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfweb.builds.repositories.MOST_BYTES", 10)
    packing.pack_all()
    assert queue.first(counter) == submitted.runs.get()
    assert "The packed sources have" in packing.problem(Build.objects.earliest("pk").source_sha256)
    monkeypatch.undo()
    services.cancel(maintainer, submitted.number)
    again = services.submit(maintainer, bytes(submitted.patch), KERNEL)
    assert queue.first(counter) is None
    packing.pack_all()
    assert queue.first(counter) == again.runs.get()


def test_an_unknown_error_is_a_fault_and_tried_again(submitted: Submission, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Packing) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("perfweb.builds.packing._archive", full)
    packing.pack_all()
    assert Fault.objects.filter(task=packing.PACK.name).count() == 2
    monkeypatch.undo()
    packing.pack_all()
    assert Packing.objects.count() == 2
    Packing.objects.update(due=timezone.now())
    packing.pack_all()
    assert (Packing.objects.count(), Fault.objects.count()) == (0, 0)
