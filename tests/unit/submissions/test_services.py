# SPDX-License-Identifier: BSD-2-Clause
"""Users' actions on submissions, and their results."""

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings as site
from pytest_django import Settings

from perfweb.accounts.actors import Actor
from perfweb.accounts.models import Role
from perfweb.accounts.permissions import NotAllowedError
from perfweb.builds import mirrors
from perfweb.builds.models import Mirror
from perfweb.builds.patches import PatchError
from perfweb.builds.repositories import RepositoryError
from perfweb.builds.sources import pack_sources
from perfweb.runs.models import ArtefactKind, Run, RunState
from perfweb.runs.planfile import MOST_BOOTS, PlanError, read_plan
from perfweb.runs.services import RunError
from perfweb.submissions import services
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.more import more
from perfweb.submissions.plans import MATRICES, KnobError
from perfweb.submissions.services import DuplicateError, SubmissionError
from tests.checkouts import Checkout
from tests.factories import create_measurements
from tests.unit.submissions.conftest import WANTED, five, person

pytestmark = pytest.mark.django_db


def finish(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE)


def test_patch_of_an_untrusted_user_waits_and_nothing_is_made_of_it(author: Actor, diff: bytes) -> None:
    submission = services.submit(author, diff, WANTED)
    assert submission.state == SubmissionState.WAITING
    assert (submission.title, submission.stages[0]["files"]) == (
        "stack/net/if.c",
        [{"path": "stack/net/if.c", "added": 1, "removed": 1}],
    )
    assert not Run.objects.exists()
    assert not (Path(site.PERFWEB_VAR) / "sources").exists()


def test_approved_patch_is_queued_against_its_base(
    author: Actor, maintainer: Actor, diff: bytes, repository: Checkout
) -> None:
    submission = services.approve(maintainer, services.submit(author, diff, WANTED).number)
    run = submission.runs.get()
    base, patch = run.variants.select_related("build")
    assert (run.state, run.requested_by, base.baseline) == (RunState.QUEUED, "author", True)
    assert base.tunables == patch.tunables == {"net.isr.dispatch": "direct"}
    assert base.build is not None
    assert patch.build is not None
    store = Path(site.PERFWEB_VAR) / "sources"
    assert base.build.source_sha256 == pack_sources(repository.tree / "stack", store).sha256
    assert patch.build.revision == f"{base.build.revision} + patch"
    with tarfile.open(store / f"{patch.build.source_sha256}.tar.gz") as archive:
        changed = archive.extractfile("stack/net/if.c")
        assert changed is not None
        assert b"int five;" in changed.read()
    assert bytes(run.artefacts.get(kind=ArtefactKind.PATCH).content) == diff
    steps = list(submission.transitions.values_list("to_state", "who"))
    assert steps == [("received", "author"), ("waiting", "perfweb"), ("approved", "maintainer")]


def test_each_patch_is_approved_for_itself(author: Actor, maintainer: Actor, repository: Checkout) -> None:
    services.approve(maintainer, services.submit(author, five(repository), WANTED).number)
    changed = services.submit(author, five(repository, "other"), WANTED)
    assert (changed.state, changed.runs.exists()) == (SubmissionState.WAITING, False)


def test_what_a_maintainer_submits_waits_for_nobody(maintainer: Actor, repository: Checkout) -> None:
    assert services.submit(maintainer, five(repository), WANTED).state == SubmissionState.APPROVED
    limited = replace(maintainer, role=Role.SUBMITTER)  # by the scope of a token
    assert services.submit(limited, five(repository, "other"), WANTED).state == SubmissionState.WAITING


def test_series_patch_by_patch(maintainer: Actor, series: bytes) -> None:
    submission = services.submit(maintainer, series, replace(WANTED, each=True))
    revisions = [variant.build.revision for variant in submission.runs.get().variants.all() if variant.build]
    assert (submission.title, len(set(revisions))) == ("net: names", 3)
    assert revisions[1:] == [f"{revisions[0]} + patch {number} of 2" for number in (1, 2)]


def test_base_commit_of_the_patch_wins(maintainer: Actor, series: bytes, repository: Checkout) -> None:
    base = repository.git("rev-parse", "HEAD").decode().strip()
    repository.edit("stack/net/if.c", lambda text: text.replace("line5;", "another;"))
    repository.commit("meanwhile")
    assert services.submit(maintainer, series, WANTED).base == base


@pytest.mark.parametrize("mirror", ["theirs", ""])
def test_branch_is_measured_against_where_it_left_main(
    maintainer: Actor, topic: str, repository: Checkout, mirror: str
) -> None:
    submission = services.submit(maintainer, b"", replace(WANTED, ref=topic, mirror=mirror))
    assert submission.base == repository.git("rev-parse", "main~1").decode().strip()
    assert repository.git("rev-parse", topic).strip() in bytes(submission.patch)
    assert (submission.title, str(submission.mirror or "")) == (topic, mirror)
    assert [stage["files"][0]["added"] for stage in submission.stages] == [2]
    with pytest.raises(DuplicateError):
        services.submit(maintainer, bytes(submission.patch), replace(WANTED, mirror=mirror))


def test_commit_and_pull_request_by_their_names(author: Actor, topic: str, repository: Checkout) -> None:
    first = repository.git("rev-parse", f"{topic}~1").decode().strip()
    one = services.examine(author, b"", replace(WANTED, ref=first, mirror="theirs"))
    assert [stage.files[0].added for stage in one.stages] == [1]
    each = services.examine(author, b"", replace(WANTED, ref="refs/pull/7/head", mirror="theirs", each=True))
    assert [stage.patch.subject for stage in each.stages] == ["net: name five;", "net: name thirty;"]
    rest = services.examine(author, b"", replace(WANTED, ref=topic, base=first, mirror="theirs"))
    assert (rest.base.sha, len(rest.stages)) == (first, 1)


@pytest.mark.parametrize(
    ("ref", "mirror", "sentence"),
    [
        ("topic/six", "theirs", "has no commit “topic/six”: push it there, or name another"),
        ("topic/six", "nobody", "no repository “nobody”; registered: theirs"),
        ("refs/pull/8/head", "theirs", "cannot be fetched: .*refs/pull/8/head"),
        ("main", "theirs", "Nothing below stack/ is changed"),
        ("refs/heads/*:refs/heads/*", "theirs", "names no commit: give a branch, a tag or a hash"),
        ("--upload-pack=x", "theirs", "names no commit"),
        ("main..topic", "", "names no commit"),
    ],
)
def test_commit_that_cannot_be_measured(author: Actor, topic: str, ref: str, mirror: str, sentence: str) -> None:
    with pytest.raises(services.PROBLEMS, match=sentence):
        services.submit(author, b"", replace(WANTED, ref=ref, mirror=mirror))
    assert not Submission.objects.exists()


def test_the_repository_and_the_tests_are_about_the_same_target(
    maintainer: Actor, diff: bytes, repository: Checkout
) -> None:
    mirror = Mirror.objects.create(name="linux", url=str(repository.tree), kind="linux")
    mirrors.fetch(mirror)
    with pytest.raises(
        RepositoryError,
        match=r"linux holds the Linux kernel, and .* target stack: .* linux-patch-quick, .*: the service's own\.$",
    ):
        services.submit(maintainer, diff, replace(WANTED, mirror="linux", matrix="udp-quick", knobs=""))
    with pytest.raises(
        RepositoryError, match=r"the stack, and .* target linux: .* tcp-quick, or another repository: linux\.$"
    ):
        services.submit(maintainer, diff, replace(WANTED, matrix="linux-patch-quick", knobs=""))
    with pytest.raises(RunError, match=r"the tests are counted; testbeds that count: none"):
        services.submit(maintainer, diff, replace(WANTED, mirror="linux", knobs=""))
    assert not Submission.objects.exists()


def test_knobs_of_a_kernel_that_counts_are_refused(maintainer: Actor, diff: bytes) -> None:
    with pytest.raises(SubmissionError, match=r"These knobs cannot be used: .* a kernel that counts has none"):
        services.submit(maintainer, diff, replace(WANTED, matrix="linux-patch-quick", knobs="net.isr.dispatch=direct"))


def test_conflict_is_kept_with_the_hunk(author: Actor, diff: bytes, repository: Checkout) -> None:
    repository.edit("stack/net/if.c", lambda text: text.replace("line5;", "another;"))
    repository.commit("meanwhile")
    submission = services.submit(author, diff, WANTED)
    assert submission.state == SubmissionState.CONFLICT
    assert "It wants:\n@@ -2,7 +2,7 @@" in submission.reason
    assert "There is:\nint line2;" in submission.reason


def test_same_again_is_offered(author: Actor, maintainer: Actor, diff: bytes) -> None:
    first = services.submit(author, diff, WANTED)
    with pytest.raises(DuplicateError) as caught:
        services.submit(person("another"), diff.replace(b"diff --git", b"Hello.\n\ndiff --git"), WANTED)
    assert caught.value.existing == first
    assert services.submit(author, diff, replace(WANTED, knobs="")) != first
    services.cancel(author, first.number)
    assert services.submit(author, diff, WANTED) != first


def test_quota_of_open_submissions(author: Actor, repository: Checkout, settings: Settings) -> None:
    settings.OPEN_SUBMISSIONS = 1
    first = services.submit(author, five(repository), WANTED)
    with pytest.raises(SubmissionError, match="1 submissions that are not over"):
        services.submit(author, five(repository, "other"), WANTED)
    services.cancel(author, first.number)
    services.submit(author, five(repository, "other"), WANTED)


def test_quota_of_machine_time(author: Actor, maintainer: Actor, diff: bytes, settings: Settings) -> None:
    settings.SUBMISSION_HOURS = 0.01
    with pytest.raises(SubmissionError, match="hours of machine time in a day"):
        services.submit(author, diff, WANTED)
    assert services.submit(maintainer, diff, WANTED).state == SubmissionState.APPROVED


def test_refusal_has_a_reason(author: Actor, maintainer: Actor, diff: bytes) -> None:
    number = services.submit(author, diff, WANTED).number
    with pytest.raises(SubmissionError, match="Say why"):
        services.refuse(maintainer, number, " ")
    assert services.refuse(maintainer, number, "reads keys").reason == "reads keys"


def test_cancel_ends_the_run(author: Actor, maintainer: Actor, diff: bytes) -> None:
    number = services.submit(maintainer, diff, WANTED).number
    with pytest.raises(NotAllowedError):
        services.cancel(author, number)
    assert services.cancel(maintainer, number).runs.get().state == RunState.CANCELLED


def test_measured_again_when_it_is_over(maintainer: Actor, diff: bytes) -> None:
    submission = services.submit(maintainer, diff, WANTED)
    with pytest.raises(SubmissionError, match="is being measured"):
        services.rerun(maintainer, submission.number)
    finish(submission.runs.get())
    again = services.rerun(maintainer, submission.number)
    assert [run.plan for run in submission.runs.all()] == [again.plan, again.plan]
    finish(again)
    with pytest.raises(SubmissionError, match="has been measured"):
        services.cancel(maintainer, submission.number)


def test_more_boots_for_what_is_open(maintainer: Actor, diff: bytes) -> None:
    submission = services.submit(maintainer, diff, WANTED)
    assert more(submission, submission.newest_run) is None
    create_measurements(submission.runs.get(), MATRICES[WANTED.matrix].tests, noise=0.04, seed=2)
    found = more(submission, submission.newest_run)
    assert found is not None
    assert 4 < found.needed == found.boots
    assert found.seconds > submission.seconds
    again = services.rerun(maintainer, submission.number, found.boots)
    spec = read_plan(again.plan.text)
    assert (spec.name, spec.boots, spec.samples) == (read_plan(submission.plan).name, found.boots, 4 * found.boots)
    assert [variant.build for variant in again.variants.all()] == [
        variant.build for variant in submission.runs.order_by("number")[0].variants.all()
    ]
    create_measurements(again, MATRICES[WANTED.matrix].tests, noise=0.001, seed=2)
    assert more(submission, submission.newest_run) is None


def test_no_run_has_more_boots_than_a_plan_may(maintainer: Actor, diff: bytes) -> None:
    submission = services.submit(maintainer, diff, WANTED)
    create_measurements(submission.runs.get(), MATRICES[WANTED.matrix].tests, noise=0.3, seed=2)
    found = more(submission, submission.newest_run)
    assert found is not None
    assert found.needed > found.boots == MOST_BOOTS
    with pytest.raises(PlanError, match="boots"):
        services.rerun(maintainer, submission.number, MOST_BOOTS + 1)


def test_plan_whose_size_cannot_be_changed(maintainer: Actor, diff: bytes) -> None:
    plan = PLAN.replace("SOURCE", "patch") + "samples: &all 4\nboots: *all\n"
    submission = services.submit(maintainer, diff, replace(WANTED, plan=plan))
    create_measurements(submission.runs.get(), ["tcp.rr/host-host/ipv4"], noise=0.04, seed=2)
    assert more(submission, submission.newest_run) is None
    with pytest.raises(services.PROBLEMS, match="is an alias"):
        services.rerun(maintainer, submission.number, 8)
    assert services.rerun(maintainer, submission.number).plan.text == plan


def test_what_is_measured_again_counts(author: Actor, maintainer: Actor, diff: bytes, settings: Settings) -> None:
    submission = services.approve(maintainer, services.submit(author, diff, WANTED).number)
    finish(submission.runs.get())
    settings.SUBMISSION_HOURS = 2.5 * submission.seconds / 3600
    finish(services.rerun(author, submission.number))
    with pytest.raises(SubmissionError, match="hours of machine time in a day"):
        services.rerun(author, submission.number)
    finish(services.rerun(person("another"), submission.number, 4))
    with pytest.raises(SubmissionError, match="hours of machine time in a day"):
        services.rerun(person("another"), submission.number, 20)


def test_roles(author: Actor, diff: bytes) -> None:
    with pytest.raises(NotAllowedError):
        services.submit(person("reader", Role.READER), diff, WANTED)
    number = services.submit(author, diff, WANTED).number
    for act in (services.approve, lambda actor, number: services.refuse(actor, number, "why")):
        with pytest.raises(NotAllowedError):
            act(author, number)
    assert Submission.objects.get().state == SubmissionState.WAITING


PLAN = """\
name: own
baseline: b
variants: [{name: b, target: stack, source: base}, {name: p, target: stack, source: SOURCE}]
tests: [tcp.rr/host-host/ipv4]
"""


def test_plan_of_ones_own(maintainer: Actor, diff: bytes) -> None:
    plan = PLAN.replace("SOURCE", "patch")
    assert services.submit(maintainer, diff, replace(WANTED, plan=plan)).runs.get().plan.text == plan


@pytest.mark.parametrize(
    ("wanted", "problem", "sentence"),
    [
        (replace(WANTED, plan=PLAN.replace("SOURCE", "base")), SubmissionError, "No variant of this plan"),
        (replace(WANTED, plan=PLAN.replace("SOURCE", "patch 2")), SubmissionError, "the source “patch 2”"),
        (replace(WANTED, plan=PLAN.replace("SOURCE", "nonsense")), PlanError, "allowed: deployed"),
        (replace(WANTED, matrix="nonsense"), SubmissionError, "there are tcp-quick"),
        (replace(WANTED, testbed="nonsense"), RunError, "no testbed"),
        (replace(WANTED, base="nonsense"), RepositoryError, "no commit"),
        (replace(WANTED, knobs="nonsense"), KnobError, "is no knob"),
    ],
)
def test_what_cannot_be_measured(
    maintainer: Actor, diff: bytes, wanted: services.SubmissionRequest, problem: type[Exception], sentence: str
) -> None:
    with pytest.raises(problem, match=sentence):
        services.submit(maintainer, diff, wanted)
    assert not Submission.objects.exists()


def test_no_patch(author: Actor) -> None:
    with pytest.raises(PatchError, match="has no diff"):
        services.submit(author, b"hello", WANTED)
