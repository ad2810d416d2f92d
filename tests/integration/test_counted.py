# SPDX-License-Identifier: BSD-2-Clause
"""Patches of a kernel on a testbed that counts: from a registered repository to a verdict and its functions.

The kernel is a tiny one, which is built and booted as Linux is.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from django.test import Client

from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Means, Role, User
from perfweb.builds import mirrors
from perfweb.builds.models import BuildState, Mirror
from perfweb.builds.packing import pack_all
from perfweb.lab import services as lab_services
from perfweb.lab.models import Testbed
from perfweb.lab.origins import Origin
from perfweb.runs.models import Artefact, Boot, BootState, Run, RunState, Sample
from perfweb.runs.services import dispatch
from perfweb.submissions.plans import MATRICES
from perfweb.submissions.services import SubmissionRequest, submit
from perfweb.submissions.status import status_of
from perfweb.verdicts.failures import warnings_of_run
from perfweb.verdicts.text import run_text
from tests.counted.planted import LINUX
from tests.counted.sources import in_tiny, tiny_repository
from tests.counted.test_kernel import planted
from tests.integration.conftest import LabHosts, wait_for_state

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("lasting_worker")]
KERNEL_SECONDS = 3600
LOAD = "counted.tcp.rr/local/ipv4"


@pytest.fixture
def counter(testbed: Testbed, hosts: LabHosts) -> Testbed:
    made = lab_services.register("counted", hosts.lab.counter)
    assert made.origin == Origin.COUNTED
    return made


def register(place: Path) -> None:
    mirrors.fetch(Mirror.objects.create(name="net-next", url=str(place), branch="master", kind="linux"))


@pytest.fixture
def tiny(tmp_path: Path) -> None:
    """A registered repository with the tiny kernel."""
    register(tiny_repository(tmp_path / "linux"))


@pytest.fixture(autouse=True)
def few_boots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each boot of the tests' lab is a play, which takes seconds."""
    matrix = MATRICES["linux-patch-quick"]
    monkeypatch.setitem(MATRICES, matrix.name, replace(matrix, boots=2, samples=2))


def counted(patch: bytes, testbed: Testbed, tests: str = "linux-patch-quick") -> Run:
    """The run of a submission, when it is over."""
    user, _ = User.objects.get_or_create(username="ada", role=Role.MAINTAINER)
    actor = Actor(user.username, user.role, Means.PAGE, user=user)
    made = submit(actor, patch, SubmissionRequest(testbed.name, tests, mirror="net-next"))
    pack_all()
    dispatch()
    run = made.runs.get()
    wait_for_state(run, RunState.DONE, RunState.FAILED, seconds=KERNEL_SECONDS)
    return run


def verdict(run: Run) -> str:
    return status_of(run.submissions.get()).words


def comparison(run: Run) -> str:
    answer = Client().get(f"/runs/{run.pk}/compare/base..patch/")
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.usefixtures("tiny")
def test_a_patch_costs_what_it_adds(counter: Testbed, hosts: LabHosts) -> None:
    run = counted(in_tiny('__asm__ volatile(".rept 10; nop; .endr");'), counter)
    assert (run.state, run.reason) == (RunState.DONE, "")
    samples = Sample.objects.valid().filter(measurement__boot__run=run, measurement__test=LOAD, metric="instructions")
    by_variant = {
        name: set(samples.filter(measurement__boot__variant__name=name).values_list("value", flat=True))
        for name in ("base", "patch")
    }
    ((before,), (after,)) = by_variant["base"], by_variant["patch"]
    assert after - before == pytest.approx(10)
    assert list(Boot.objects.filter(run=run).order_by("position").values_list("seed", flat=True)) == [1, 1, 2, 2]
    page = comparison(run)
    assert "tcp_v4_rcv" in page
    assert "+10.0000" in page
    assert "16 more, 0 fewer, 0 equal" in page
    assert f"{LOAD} " in run_text(run)
    hosts.assert_clean(run)


FAILING = {
    "panic": ('panic("planted panic");', "panic: Kernel panic - not syncing: planted panic"),
    "hang": (
        'print("watchdog: BUG: soft lockup - CPU#0 stuck for 26s!\\n"); for (;;) ;',
        "hang: watchdog: BUG: soft lockup - CPU#0 stuck for 26s!",
    ),
    "lockdep": (
        'print("WARNING: possible recursive locking detected\\n"); reset();',
        "locking error: WARNING: possible recursive locking detected",
    ),
}
"""Lines of the tiny kernel, and the decisive lines of its console: the texts are those of Linux."""


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("kind", FAILING)
def test_a_patch_that_does_not_run_is_a_verdict(counter: Testbed, hosts: LabHosts, kind: str) -> None:
    text, line = FAILING[kind]
    run = counted(in_tiny(text), counter)
    assert run.state == RunState.DONE
    assert run.reason.startswith("16 of 48 measurements failed")
    (patched,) = Boot.objects.filter(run=run, variant__name="patch")  # the first one decides
    assert (patched.state, patched.error) == (BootState.FAILED, line)
    log = Artefact.objects.filter(boot=patched, name__endswith="boot.log").get()
    assert b"counted: up" in bytes(log.content)
    assert verdict(run) == f"Patch does not run: {line}"
    hosts.assert_clean(run)


@pytest.mark.usefixtures("tiny")
def test_a_patch_that_does_not_build_is_a_verdict(counter: Testbed, hosts: LabHosts) -> None:
    run = counted(in_tiny("missing++;"), counter)
    assert run.state == RunState.FAILED
    assert "kernel.c:" in run.reason
    assert "error: 'missing' undeclared" in run.reason
    assert [variant.build.state for variant in run.variants.order_by("position") if variant.build] == [
        BuildState.READY,
        BuildState.FAILED,
    ]
    assert verdict(run).startswith("Patch does not build: kernel.c:")
    hosts.assert_clean(run)


@pytest.mark.usefixtures("tiny")
def test_a_new_warning_of_the_compiler_is_shown(counter: Testbed) -> None:
    run = counted(in_tiny("{ int planted; }"), counter)
    (warning,) = warnings_of_run(run)
    assert "unused variable 'planted'" in warning.text
    assert "unused variable &#x27;planted&#x27;" in comparison(run)


@pytest.mark.thorough
@pytest.mark.timeout(3 * KERNEL_SECONDS)
def test_a_patch_of_linux(counter: Testbed, hosts: LabHosts) -> None:
    register(LINUX)
    run = counted(planted("\t{ static atomic_t planted; atomic_inc(&planted); }\n"), counter)
    assert (run.state, run.reason) == (RunState.DONE, "")
    assert "tcp_v4_rcv" in comparison(run)
    assert "panic: Kernel panic - not syncing: planted panic" in verdict(
        counted(planted('\tpanic("planted panic");\n'), counter)
    )
    hangs = counted(planted("\tfor (;;)\n\t\tbarrier();\n"), counter)
    assert "hang: it does not end within 100 s, under load, in tcp_v4_rcv" in verdict(hangs)
    twice = planted("\t{ static DEFINE_SPINLOCK(planted); spin_lock(&planted); spin_lock(&planted); }\n")
    locks = counted(twice, counter, "linux-patch-debug")
    assert "locking error: WARNING: possible recursive locking detected" in verdict(locks)
    broken = counted(planted("\tmissing++;\n"), counter)
    assert "error: 'missing' undeclared" in verdict(broken)
    hosts.assert_clean(run)
