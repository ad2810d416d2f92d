# SPDX-License-Identifier: BSD-2-Clause
"""Actions on submissions: examine, submit, approve, refuse, cancel, measure again."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from perfweb.accounts import audit, limits
from perfweb.accounts.actors import Actor
from perfweb.accounts.models import User
from perfweb.accounts.permissions import Action, may
from perfweb.builds import mirrors
from perfweb.builds.bases import advice, advice_after_conflict
from perfweb.builds.kinds import STACK, Kind
from perfweb.builds.mails import without_crlf
from perfweb.builds.models import Mirror, Packing
from perfweb.builds.packing import packed
from perfweb.builds.patches import PatchError, Series, read_series
from perfweb.builds.repositories import (
    Bench,
    Commit,
    ConflictError,
    MissingCommitError,
    Repository,
    RepositoryError,
    Stage,
    check_name,
)
from perfweb.builds.sources import LONGEST_REVISION, SourceError, Sources
from perfweb.builds.threads import series_in
from perfweb.lab.models import Testbed
from perfweb.runs import services as runs
from perfweb.runs.models import FINAL_STATES, Run
from perfweb.runs.planfile import BASE, MOST_VARIANTS, PATCH, PlanError, PlanSpec, SizeError, read_plan
from perfweb.submissions import states
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.submissions.plans import (
    MATRICES,
    KnobError,
    Part,
    machine_seconds,
    parts,
    plan_text,
    read_knobs,
    with_boots,
)
from perfweb.transitions import IllegalTransitionError

LONGEST_TITLE = 150


class SubmissionError(ValueError):
    """The action is not possible; the message has the reason and what to do."""


class QuotaError(SubmissionError):
    """The author has used up a quota; a later attempt may succeed."""


class DuplicateError(SubmissionError):
    """A submission of the same patch on the same base with the same plan and testbed exists already.

    The message names it; each interface adds how to measure it again there.
    """

    def __init__(self, existing: Submission) -> None:
        by = existing.author.username
        super().__init__(f"Submission {existing.number} by {by} has the same patch, base, plan and testbed.")
        self.existing = existing


PROBLEMS = (
    SubmissionError, PatchError, RepositoryError, SourceError, PlanError, SizeError, KnobError, runs.RunError,
    IllegalTransitionError,
)  # fmt: skip
"""The errors of a request, each with a message for users."""


@dataclass(frozen=True)
class SubmissionRequest:
    """How to measure a patch: a matrix with knobs as lines `name=value`, or the whole text of a plan; against a commit
    of a mirror, or of the service's own repository. For the usual matrix that of the repository's kind is taken. With a
    `ref` the patch is the difference between it and the base. With a `message_id` it is the series of that mail in a
    thread.
    """

    testbed: str
    matrix: str = "tcp-quick"
    knobs: str = ""
    each: bool = False
    base: str = ""
    plan: str = ""
    title: str = ""
    mirror: str = ""
    ref: str = ""
    message_id: str = ""


@dataclass(frozen=True)
class Examined:
    """A preview of a submission: nothing of the patch is executed.  After a conflict there are no stages."""

    patch: bytes
    series: Series
    base: Commit
    stages: Sequence[Stage]
    title: str
    plan: str
    spec: PlanSpec
    testbed: Testbed
    mirror: Mirror | None
    seconds: int
    conflict: ConflictError | None = None
    content: str = ""

    @property
    def parts(self) -> list[Part]:
        """What a run does, in order."""
        return parts(self.spec)


def examine(actor: Actor, patch: bytes, wanted: SubmissionRequest) -> Examined:
    """Apply a patch in a temporary place, and make its plan. Raises one of PROBLEMS."""
    limits.write(actor.name, actor.address)
    mirror = mirrors.find(wanted.mirror)
    patch = _changes(mirror, wanted) if wanted.ref else without_crlf(patch)
    if wanted.message_id:
        patch = series_in(patch, wanted.message_id)
    series = read_series(patch)
    repository = mirrors.opened(mirror)
    base = _base(repository, series, wanted, mirror)
    conflict, stages = None, list[Stage]()
    with repository.bench() as bench:
        try:
            stages = bench.apply(series, base)
        except ConflictError as error:
            what = advice_after_conflict(bench, series, _branch(mirror), mirrors.beside(mirror))
            conflict = ConflictError(f"{error} {what}", error.hunk, error.there)
    title = (wanted.title or series.title or wanted.ref or _title(stages))[:LONGEST_TITLE]
    changed = _digest([base.sha, *(stage.tree for stage in stages)])
    text = wanted.plan or _plan(wanted, repository.kind, f"patch-{changed[:8]}", title, len(series.patches))
    spec = _spec(wanted, text)
    mirrors.require_targets(mirror, [variant.target for variant in spec.variants])
    _check_sources(spec, len(series.patches))
    testbed = _testbed(spec, wanted.testbed, repository.kind)
    return Examined(
        patch=patch,
        series=series,
        base=base,
        stages=stages,
        title=title,
        plan=text,
        spec=spec,
        testbed=testbed,
        mirror=mirror,
        seconds=machine_seconds(spec),
        conflict=conflict,
        content="" if conflict else _digest([changed, testbed.name, repr(replace(spec, name="", title=""))]),
    )


def submit(
    actor: Actor, patch: bytes, wanted: SubmissionRequest, withdraw: Callable[[], None] = lambda: None
) -> Submission:
    """Store a patch; queue it at once if its submitter may approve it. Raises one of PROBLEMS.

    `withdraw` ends what this patch replaces, which then counts neither for the quota nor as the same patch. Unless the
    patch applies and is accepted, nothing is withdrawn.
    """
    examined = examine(actor, patch, wanted)
    with audit.action(actor, Action.SUBMIT) as entry:
        author = _account(actor)
        # Locked, so that two parallel submissions cannot exceed the quota.
        User.objects.select_for_update().get(pk=author.pk)
        _lock(examined.content)
        if not examined.conflict:
            withdraw()
        if existing := _same(examined.content):
            raise DuplicateError(existing)
        if not may(actor, Action.APPROVE):
            _check_quota(author, examined.seconds)
        submission = _create(author, examined)
        entry.subject, entry.detail = str(submission), examined.title
        return _decide(submission, actor, examined)


def approve(actor: Actor, number: int, reason: str = "") -> Submission:
    """Approve a waiting patch, so that it is built and measured. Raises one of PROBLEMS."""
    with audit.action(actor, Action.APPROVE, f"submission {number}", reason):
        runs.find_testbed(get(number).testbed.name)
        submission = states.approve(number, actor.name, reason)
        _measure(submission, submission.plan, submission.author.username)
        return submission


def refuse(actor: Actor, number: int, reason: str) -> Submission:
    """End a waiting submission, with a reason. Raises one of PROBLEMS."""
    if not reason.strip():
        raise SubmissionError("Say why it is refused: its author reads that.")
    with audit.action(actor, Action.APPROVE, f"submission {number}", f"refused: {reason}"):
        return states.refuse(get(number).number, actor.name, reason.strip())


def cancel(actor: Actor, number: int) -> Submission:
    """End a submission and its runs. Raises one of PROBLEMS."""
    submission = get(number)
    own = actor.user is not None and submission.author_id == actor.user.pk
    with audit.action(actor, Action.CANCEL_OWN if own else Action.CANCEL_ANY, str(submission)):
        working = [run for run in submission.runs.all() if not run.is_over]
        if submission.state == SubmissionState.APPROVED and not working:
            raise SubmissionError(f"{submission} has been measured and cannot be cancelled.".capitalize())
        cancelled = states.cancel(number, actor.name)
        for run in working:
            runs.cancel(run.number, actor.name)
        return cancelled


def rerun(actor: Actor, number: int, boots: int | None = None) -> Run:
    """Measure an approved submission again, with other `boots` of each variant. Raises one of PROBLEMS."""
    submission = get(number)
    with audit.action(actor, Action.SUBMIT, str(submission), f"measured again{f', {boots} boots' if boots else ''}"):
        if submission.state != SubmissionState.APPROVED:
            raise SubmissionError(
                f"{submission} is {submission.get_state_display()}: only approved submissions are measured."
            )
        if any(not run.is_over for run in submission.runs.all()):
            raise SubmissionError(f"{submission} is being measured: wait for the end, or cancel it.")
        plan = submission.plan if boots is None else with_boots(submission.plan, boots)
        if not may(actor, Action.APPROVE):
            _check_quota(_account(actor), machine_seconds(read_plan(plan)))
        return _measure(submission, plan, actor.name)


def get(number: int) -> Submission:
    """Return submission `number`. Raises SubmissionError if there is none."""
    submission = Submission.objects.filter(number=number).first()
    if submission is None:
        raise SubmissionError(f"There is no submission {number}.")
    return submission


def _account(actor: Actor) -> User:
    if actor.user is None:
        raise SubmissionError("A submission has an account as its author: sign in, or use a token.")
    return actor.user


def _base(repository: Repository, series: Series, wanted: SubmissionRequest, mirror: Mirror | None) -> Commit:
    """The commit that a series is applied to: the requested one, else that of its line base-commit, else the branch.

    The patch of a ref is what it has since it left the requested base, so its own line has that commit.
    """
    name = (not wanted.ref and wanted.base) or series.base or _branch(mirror)
    try:
        return repository.commit(name)
    except MissingCommitError as error:
        with repository.bench() as bench:
            what = advice(bench, series, _branch(mirror), mirrors.beside(mirror))
            raise MissingCommitError(name, what, error.near) from None


def _lock(content: str) -> None:
    """Waits for other transactions that submit the same, until the end of this one: only the first makes a submission.

    The lock of the author is taken before, so that no two transactions wait for each other.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"submission {content}"])


def _branch(mirror: Mirror | None) -> str:
    """The default base of patches."""
    return mirror.branch if mirror else "HEAD"


def _changes(mirror: Mirror | None, wanted: SubmissionRequest) -> bytes:
    """Return the changes of a branch, tag or commit since the base, fetched now. A name that begins with refs/ is
    fetched although it is no branch: refs/pull/7/head.
    """
    check_name(wanted.ref)
    base = wanted.base or _branch(mirror)
    repository = (
        mirrors.fetch(mirror, base, wanted.ref, seconds=mirrors.PAGE_SECONDS) if mirror else mirrors.opened(None)
    )
    return mirrors.changes(repository, base, wanted.ref, each=wanted.each).patch


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _plan(wanted: SubmissionRequest, kind: Kind, name: str, title: str, patches: int) -> str:
    """Return the plan of a matrix. Its name depends on the patch, so that no timeline joins different code."""
    usual = kind.matrix if wanted.matrix == STACK.matrix else wanted.matrix
    matrix = MATRICES.get(usual)
    if matrix is None:
        raise SubmissionError(f"There is no matrix “{wanted.matrix[:40]}”; there are {', '.join(MATRICES)}.")
    if wanted.each and patches >= MOST_VARIANTS:
        raise SubmissionError(
            f"This series has {patches} patches; patch by patch (each) at most {MOST_VARIANTS - 1} are measured. "
            "Request the series as a whole, or send fewer patches."
        )
    return plan_text(matrix, name, title, read_knobs(wanted.knobs), patches, each=wanted.each and patches > 1)


def _spec(wanted: SubmissionRequest, text: str) -> PlanSpec:
    """The plan of a request. An error in a plan that the user has not written is one of the request."""
    try:
        return read_plan(text)
    except PlanError as error:
        if wanted.plan:
            raise
        if error.field == "title":
            raise SubmissionError(f"The title {error.problem}.") from None
        raise SubmissionError(
            f"These knobs cannot be used: the list {error.problem}. Request fewer or other knobs."
        ) from None


def _testbed(spec: PlanSpec, name: str, kind: Kind) -> Testbed:
    """Return the testbed of this name. If it does not suit the tests, the error names those of the repository's kind
    that suit it.
    """
    try:
        return runs.testbed_for(spec, name)
    except runs.OriginError as error:
        suitable = [one.name for one in MATRICES.values() if one.origin == error.had and one.target in kind.targets]
        if not suitable:
            raise
        raise SubmissionError(f"{error}; tests for {name}: {', '.join(suitable)}") from None


def _check_sources(spec: PlanSpec, patches: int) -> None:
    """Check a user's own plan: it has to measure the patch, and only existing stages."""
    known = _stages_by_source(patches)
    sources = {variant.source for variant in spec.variants}
    if unknown := sorted(sources - known.keys()):
        had = ", ".join(f"“{name}”" for name in known)
        raise SubmissionError(f"The plan names the source “{unknown[0]}”; this submission has {had}.")
    if not sources - {BASE}:
        raise SubmissionError("No variant of this plan is built from the patch: give one `source: patch`.")


def _stages_by_source(patches: int) -> dict[str, int]:
    """Return the stage of a variant's source; 0 is the base."""
    return {BASE: 0, PATCH: patches, **{f"{PATCH} {number}": number for number in range(1, patches + 1)}}


def _title(stages: Sequence[Stage]) -> str:
    """Return a name for a bare diff: the files that it changes."""
    paths = [file.path for stage in stages for file in stage.files]
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}" if paths else "a diff that does not apply"


def _same(content: str) -> Submission | None:
    if not content:
        return None
    alive = Submission.objects.filter(state__in=[SubmissionState.WAITING, SubmissionState.APPROVED])
    return alive.filter(content=content).first()


def _check_quota(author: User, seconds: int) -> None:
    unfinished = Q(state=SubmissionState.WAITING) | Q(
        state=SubmissionState.APPROVED, pk__in=Submission.runs.through.objects.filter(
            ~Q(run__state__in=FINAL_STATES)
        ).values("submission_id")
    )  # fmt: skip
    open_ones = author.submissions.filter(unfinished).count()
    if open_ones >= settings.OPEN_SUBMISSIONS:
        raise QuotaError(f"You have {open_ones} submissions that are not over: wait for one, or cancel one.")
    spent = _spent(author) + seconds
    if spent > settings.SUBMISSION_HOURS * 3600:
        raise QuotaError(
            f"With this you would use {spent / 3600:.1f} hours of machine time in a day; {settings.SUBMISSION_HOURS:g} "
            "are yours. Choose a smaller matrix, or come back tomorrow."
        )


def _spent(author: User) -> int:
    """Return the estimated seconds of testbed time of a user in the last day: runs, and submissions waiting for
    approval.
    """
    since = timezone.now() - timedelta(days=1)
    waiting = author.submissions.filter(created__gte=since, state=SubmissionState.WAITING)
    measured = Run.objects.filter(
        requested_by=author.username, created__gte=since, submissions__state=SubmissionState.APPROVED
    )
    plans = measured.values_list("plan__text", flat=True)
    return sum(waiting.values_list("seconds", flat=True)) + sum(machine_seconds(read_plan(text)) for text in plans)


def _create(author: User, examined: Examined) -> Submission:
    submission = Submission.objects.create(
        author=author,
        title=examined.title,
        patch=examined.patch,
        mirror=examined.mirror,
        base=examined.base.sha,
        revision=examined.base.revision[:LONGEST_REVISION],
        stages=[
            {
                "subject": stage.patch.subject,
                "author": stage.patch.author,
                "files": [asdict(changed) for changed in stage.files],
            }
            for stage in examined.stages
        ],
        content=examined.content,
        plan=examined.plan,
        testbed=examined.testbed,
        seconds=examined.seconds,
    )
    states.received(submission, author.username)
    if examined.mirror:
        mirrors.keep(examined.mirror, examined.base.sha)
    return submission


def _decide(submission: Submission, actor: Actor, examined: Examined) -> Submission:
    """Return the state of a new submission."""
    number = submission.number
    if error := examined.conflict:
        parts = [str(error), error.hunk and f"It wants:\n{error.hunk}", error.there and f"There is:\n{error.there}"]
        return states.conflict(number, "perfweb", "\n\n".join(filter(None, parts)))
    if not may(actor, Action.APPROVE):
        return states.wait(number, "perfweb", "It is not built before a maintainer approves it.")
    submission = states.approve(number, "perfweb", f"{actor.name} may approve patches.")
    _measure(submission, submission.plan, actor.name, examined.stages)
    return submission


def _measure(submission: Submission, plan: str, requested_by: str, stages: Sequence[Stage] = ()) -> Run:
    """Pack the sources of the plan's variants, and queue a run. `stages` are those of the patch if they are known."""
    spec = read_plan(plan)
    patch = bytes(submission.patch)
    series = read_series(patch)
    repository = mirrors.opened(submission.mirror)
    base = repository.commit(submission.base)
    with repository.bench() as bench:
        if not stages or not bench.kind.packed_later:  # which packs no objects of this bench
            stages = bench.apply(series, base)
        sources = _pack(bench, submission, base, stages, {item.source for item in spec.variants})
    run = runs.submit(plan, submission.testbed.name, requested_by, sources=sources, patch=patch)
    submission.runs.add(run)
    return run


def _pack(
    bench: Bench, submission: Submission, base: Commit, stages: Sequence[Stage], wanted: set[str]
) -> dict[str, Sources]:
    sources = {}
    for source, number in _stages_by_source(len(stages)).items():
        if source not in wanted:
            continue
        how = Packing(mirror=submission.mirror, commit=base.sha, patch=submission.patch, patches=number)
        if number == 0:
            sources[source] = packed(bench, bench.tree_of(base.sha), how, base.revision, base.committed)
        else:
            sources[source] = packed(bench, stages[number - 1].tree, how, _patched(base, number, len(stages)))
    return sources


def _patched(base: Commit, number: int, patches: int) -> str:
    """Return the revision of a stage for pages: abc1234 + patch 2 of 3."""
    which = f"patch {number} of {patches}" if patches > 1 else "patch"
    return f"{base.revision[: LONGEST_REVISION - len(which) - 3]} + {which}"
