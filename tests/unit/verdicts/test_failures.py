# SPDX-License-Identifier: BSD-2-Clause
"""Variants that fail have a verdict: the decisive line, in the state of the submission, on its page and in the API."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from perfweb.builds.models import Build, BuildState
from perfweb.lab.models import Testbed
from perfweb.lab.origins import Origin
from perfweb.mail import answers
from perfweb.measuring.record import artefact
from perfweb.runs.models import ArtefactKind, Boot, BootState, Run, RunState, Variant
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.status import status_of
from perfweb.verdicts.failures import Kind, blames_patch, failures, in_words, warnings_of_run
from tests.factories import create_boot, create_queued_run, create_submission, create_testbed

pytestmark = pytest.mark.django_db
ERROR = (
    "net/x.c:3:2: error: 'missing' undeclared\n    3 |         missing++;\n      |         ^~~~~~~\nmake: *** Error 2\n"
)
WARNING = "net/y.c:9:6: warning: unused variable '{name}' [-Wunused-variable]\n"


def build(log: str, *, good: bool = True) -> Build:
    return Build.objects.create(
        key=f"{abs(hash(log)):032x}"[:32], source_sha256="0" * 64, log=log, prefix="/x" if good else "",
        state=BuildState.READY if good else BuildState.FAILED,
    )  # fmt: skip


@pytest.fixture
def submission() -> Submission:
    made = create_submission(SubmissionState.APPROVED)
    run = create_queued_run(create_testbed("counted", origin=Origin.COUNTED))
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE)
    for position, name in enumerate(("base", "patch")):
        Variant.objects.create(run=run, name=name, position=position, baseline=name == "base", target="linux")
    made.runs.add(run)
    return made


def run_of(submission: Submission) -> Run:
    return submission.runs.select_related("testbed", "plan").get()


def boots(run: Run, variant: str, *errors: str) -> None:
    for error in errors:
        boot = create_boot(run, run.variants.get(name=variant), "host-host", "none", run.boots.count())
        state = BootState.FAILED if error else BootState.STOPPED
        Boot.objects.filter(pk=boot.pk).update(state=state, error=error)


def built(run: Run, variant: str, made: Build) -> None:
    run.variants.filter(name=variant).update(build=made)


def test_a_build_that_fails_has_the_compilers_line_and_the_source(submission: Submission, client: Client) -> None:
    run = run_of(submission)
    built(run, "base", build("fine"))
    built(run, "patch", build(WARNING.format(name="before") + ERROR, good=False))
    Run.objects.filter(pk=run.pk).update(state=RunState.FAILED, reason="a build failed")
    (found,) = failures([run_of(submission)])[run.pk]
    assert (found.variant, found.kind, found.line) == ("patch", Kind.BUILD, "net/x.c:3: error: 'missing' undeclared")
    assert found.details.startswith("    3 |         missing++;")
    status = status_of(submission)
    assert (status.state, status.words) == ("failure", f"Patch does not build: {found.line}")
    for address in (f"/submissions/{submission.number}/", f"/runs/{run.pk}/"):
        page = client.get(address).content.decode()
        assert "✗ patch does not build" in page
        assert "missing++;" in page
    (document,) = client.get(f"/api/v1/runs/{run.pk}").json()["failures"]
    assert document == {"variant": "patch", "kind": "does not build", "line": found.line, "details": found.details}


def test_a_kernel_that_fails_on_each_boot_has_its_first_line(submission: Submission) -> None:
    run = run_of(submission)
    boots(run, "base", "", "")
    boots(run, "patch", "hang: it does not end within 100 s", "panic: another")
    found = failures([run_of(submission)])[run.pk]
    assert in_words(found) == "patch does not run: hang: it does not end within 100 s"
    assert blames_patch(found)
    assert status_of(submission).state == "failure"


def test_an_error_is_shown_once(submission: Submission, client: Client) -> None:
    run = run_of(submission)
    built(run, "patch", build(ERROR, good=False))
    Run.objects.filter(pk=run.pk).update(state=RunState.FAILED, reason=f"dut: make failed: {ERROR}")
    for address in (f"/submissions/{submission.number}/", f"/runs/{run.pk}/"):
        page = client.get(address).content.decode().partition('id="story"')[0].partition('id="history"')[0]
        assert page.count("&#x27;missing&#x27; undeclared") == 1, address
    assert answers.result([submission], "tcp", trailer=False).count("'missing' undeclared") == 1
    Run.objects.filter(pk=run.pk).update(reason="the lab is away")
    for address in (f"/submissions/{submission.number}/", f"/runs/{run.pk}/"):
        assert "the lab is away" in client.get(address).content.decode()


def test_a_panic_leads_to_the_console_of_its_boot(submission: Submission, client: Client) -> None:
    run = run_of(submission)
    boots(run, "base", "")
    boots(run, "patch", "panic: x", "panic: y")
    for boot in Boot.objects.filter(run=run):
        artefact(boot, ArtefactKind.BOOT_LOG, "boot.log", f"console of boot {boot.position}")
    for address in (f"/submissions/{submission.number}/", f"/runs/{run.pk}/"):
        (console,) = re.findall(r'href="(/artefacts/\d+/)">console of the boot', client.get(address).content.decode())
        assert b"console of boot 1" in b"".join(client.get(console))


def test_one_good_boot_is_no_failure(submission: Submission) -> None:
    run = run_of(submission)
    boots(run, "patch", "panic: x", "")
    assert failures([run_of(submission)])[run.pk] == []


@pytest.mark.parametrize("other", [{"sentinel": True}, {"state": BootState.INTERRUPTED}])
def test_boots_that_do_not_count_do_not_hide_a_failure(submission: Submission, other: dict[str, object]) -> None:
    run = run_of(submission)
    boots(run, "patch", "panic: x", "")
    Boot.objects.filter(run=run, error="").update(**other)
    assert in_words(failures([run])[run.pk]) == "patch does not run: panic: x"


def test_a_baseline_that_fails_is_not_the_patchs_fault(submission: Submission) -> None:
    run = run_of(submission)
    boots(run, "base", "panic: x")
    boots(run, "patch", "panic: x")
    assert not blames_patch(failures([run_of(submission)])[run.pk])
    assert status_of(submission).failures == ()


def test_a_run_that_is_not_over_has_no_failures(submission: Submission) -> None:
    run = run_of(submission)
    boots(run, "patch", "panic: x")
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    assert failures([run_of(submission)]) == {}


def test_only_warnings_that_the_base_lacks_are_new(submission: Submission, client: Client) -> None:
    run = run_of(submission)
    old, new = WARNING.format(name="old"), WARNING.format(name="new")
    built(run, "base", build(old))
    built(run, "patch", build(old.replace(":9:", ":12:") + new))
    assert [one.text for one in warnings_of_run(run)] == ["unused variable 'new' [-Wunused-variable]"]
    for address in (f"/submissions/{submission.number}/", f"/runs/{run.pk}/"):
        page = client.get(address).content.decode()
        assert page.count("unused variable &#x27;new&#x27; [") == 1
        assert "unused variable &#x27;old&#x27;" not in page
    assert "\n  net/y.c:9: warning: unused variable 'new'" in answers.result([submission], "tcp", trailer=False)
    Testbed.objects.update(origin=Origin.MEASURED)  # its builds compile only what has changed
    assert warnings_of_run(run_of(submission)) == []
