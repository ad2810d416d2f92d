# SPDX-License-Identifier: BSD-2-Clause
"""The responses about a measured patch."""

import re

import pytest
from django.core import mail as sent

from perfweb.accounts.models import Role, User
from perfweb.builds.models import Build, BuildState
from perfweb.runs.models import Boot, BootState, Measurement, MeasurementState, Run, RunState, Sample
from perfweb.submissions import services
from perfweb.submissions.models import Submission
from perfweb.submissions.plans import MATRICES
from perfweb.verdicts.numbers import MINUS
from tests.checkouts import Checkout
from tests.factories import create_measurements
from tests.unit.mail.conftest import OWN, SIGNED, posted, receive_all, two_commits, with_header, work
from tests.unit.submissions.conftest import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def mailed_run(repository: Checkout, ada: User) -> Run:
    """The run of a patch that came by a list, with a requested line Perf-tested-by."""
    two_commits(repository)
    made = posted(repository, 2, asking="perf: tcp quick net.isr.dispatch=direct trailer")
    receive_all([with_header(SIGNED + mail, "List-Id: <net.lists.example>") for mail in made])
    work()
    return Run.objects.get()


def answer(run: Run, noise: float, gain: float) -> str:
    """The mail when the run has ended; the patched variant is `gain` times as fast."""
    create_measurements(run, MATRICES["tcp-quick"].tests, noise, seed=2)
    changed = Sample.objects.filter(measurement__boot__variant__name="patch", measurement__test__startswith="tcp.rr")
    for sample in changed:
        sample.value *= gain
        sample.save()
    work()
    reply = sent.outbox[-1]
    assert reply.cc == ["net@lists.example"]
    return str(reply.body)


def test_slower_patch(mailed_run: Run) -> None:
    text = answer(mailed_run, 0.001, 0.9)
    assert text.startswith("Slower: 1 slower, 2 equivalent (patch against base).")
    assert re.search(rf"^tcp\.rr/host-host/ipv4 +{MINUS}1\d\.\d\d %.* slower", text, re.MULTILINE)
    assert "\n+----" in text  # ministat's plot
    assert "Difference at 95.0% confidence" in text
    assert "with net.isr.dispatch=direct" in text
    assert f"/submissions/{Submission.objects.get().number}/" in text
    assert f"/runs/{mailed_run.pk}/raw.tar" in text
    assert "\n  perf: tcp quick net.isr.dispatch=direct trailer\n" in text
    assert "\nPerf-tested-by:" not in text
    assert max(map(len, text.splitlines())) <= 72
    assert work() == 0


def test_white_space_gets_its_line(mailed_run: Run) -> None:
    text = answer(mailed_run, 0.001, 1.0)
    assert text.startswith("Equivalent: 3 equivalent (patch against base). Changes from 0.")
    assert f"\nPerf-tested-by: perfweb <{OWN}> # " in text


def test_noise_proves_nothing(mailed_run: Run) -> None:
    text = answer(mailed_run, 0.2, 1.0)
    assert text.startswith("No change was proven: 3 not enough data (")
    assert "would have shown" in " ".join(text.split())
    assert "There is no line Perf-tested-by" in text


def test_the_sender_gets_the_result_of_a_repeated_measurement(mailed_run: Run, ada: User) -> None:
    answer(mailed_run, 0.2, 1.0)
    again = services.rerun(person("maintainer", Role.MAINTAINER), Submission.objects.get().number)
    assert work() == 0
    create_measurements(again, MATRICES["tcp-quick"].tests, 0.001, seed=2)
    assert work() == 1
    assert sent.outbox[-1].cc == []
    assert str(sent.outbox[-1].body).startswith("Equivalent: 3 equivalent (patch against base).")
    assert work() == 0


def test_run_that_failed(mailed_run: Run) -> None:
    Run.objects.update(state=RunState.FAILED, reason="the patch\x1b does not build")
    work()
    reply = sent.outbox[-1]
    assert reply.cc == []
    assert "failed: the patch? does not build" in " ".join(str(reply.body).split())


def test_run_that_can_be_resumed_is_waited_for(mailed_run: Run) -> None:
    Run.objects.update(state=RunState.INTERRUPTED)
    assert work() == 0


def test_patch_whose_boots_fail(mailed_run: Run) -> None:
    """The run is done, and the decisive line comes first."""
    create_measurements(mailed_run, MATRICES["tcp-quick"].tests, 0.001, seed=2)
    Boot.objects.filter(variant__name="patch").update(state=BootState.CRASHED, error="panic: lock order")
    Measurement.objects.filter(boot__variant__name="patch").update(state=MeasurementState.FAILED, reason="it died")
    work()
    text = str(sent.outbox[-1].body)
    assert text.startswith("net: names fails:\n\n  patch does not run: panic: lock order\n")
    assert "There is no line Perf-tested-by" in text


def test_patch_that_does_not_build(mailed_run: Run) -> None:
    """The compiler's line and the source are not wrapped."""
    source = " 1207 |         " + "very_long_name = " * 5 + "0;"
    log = f"net/x.c:1207:9: error: 'very_long_name' undeclared\n{source}\nmake: *** Error 2\n"
    build = Build.objects.create(key="1" * 32, source_sha256="1" * 64, state=BuildState.FAILED, log=log)
    mailed_run.variants.filter(name="patch").update(build=build)
    Run.objects.update(state=RunState.FAILED, reason="a build failed")
    work()
    text = str(sent.outbox[-1].body)
    assert text.startswith("net: names fails:\n\n  patch does not build: net/x.c:1207: error: 'very_long_name' undecl")
    assert f"\n  {source}\n" in text
    assert "Not measured." in text
    assert "There is no line Perf-tested-by" in text
