# SPDX-License-Identifier: BSD-2-Clause
"""The responses of the API that this client reads, with the fields and types of its OpenAPI document."""

from __future__ import annotations

from typing import Any, TypedDict


class PlanName(TypedDict):
    """The plan of a run."""

    name: str
    title: str
    sha256: str
    url: str


class VariantOfRun(TypedDict):
    """A variant that a run compares."""

    name: str
    baseline: bool
    target: str
    build_options: list[str]
    tunables: dict[str, Any]
    revision: str | None
    build: str | None


class PairVerdict(TypedDict):
    """The results of a run for one of its variants."""

    base: str
    variant: str
    words: str


class Imported(TypedDict):
    """The origin of imported results."""

    format: str
    origin: str
    sha256: str
    imported_by: str
    at: str


class Account(TypedDict):
    """The account of a token, and its permissions."""

    name: str
    role: str
    token: str
    scope: str
    expires: str
    may: list[str]


class Cancelled(TypedDict):
    """A run that was cancelled, or will be soon."""

    number: int
    state: str
    cancel_requested: bool


class ChangedFile(TypedDict):
    """Lines that a patch adds and removes."""

    path: str
    added: int
    removed: int


class StageOfSubmission(TypedDict):
    """One patch of a series."""

    subject: str
    author: str
    files: list[ChangedFile]


class RunOfSubmission(TypedDict):
    """A run that measures a submission."""

    number: int
    state: str
    url: str


class SubmissionStep(TypedDict):
    """A step in the life of a submission."""

    at: str
    from_state: str
    to_state: str
    who: str
    reason: str


class SubmissionDetail(TypedDict):
    """A submission with all details except its results."""

    number: int
    title: str
    author: str
    state: str
    base: str
    revision: str
    testbed: str
    seconds: int
    created: str
    runs: list[RunOfSubmission]
    url: str
    page: str
    reason: str
    stages: list[StageOfSubmission]
    plan: str
    history: list[SubmissionStep]
    patch: str
    deciding_boots: int | None


class RunRow(TypedDict):
    """A run in a list."""

    number: int
    state: str
    over: bool
    reason: str
    plan: PlanName
    testbed: str
    origin: str
    simulated: bool
    sample: str
    variants: list[VariantOfRun]
    imported: Imported | None
    requested_by: str
    seed: int
    created: str
    started: str | None
    ended: str | None
    verdicts: list[PairVerdict] | None
    url: str
    page: str


class HostOfRun(TypedDict):
    """The facts about a host when the run used it."""

    role: str
    name: str
    facts: dict[str, Any]


class Transition(TypedDict):
    """A step in the life of a run."""

    at: str
    from_state: str
    to_state: str
    reason: str


class File(TypedDict):
    """A file to download."""

    name: str
    url: str


class Failure(TypedDict):
    """A variant that fails."""

    variant: str
    kind: str
    line: str
    details: str


class RunDetail(RunRow):
    """A run with all details except its results."""

    hosts: list[HostOfRun]
    history: list[Transition]
    boots: int
    measurements: dict[str, int]
    files: list[File]
    events: str
    failures: list[Failure]
    warnings: list[str]


class Summary(TypedDict):
    """The counted samples of one side."""

    n: int
    mean: float
    median: float
    deviation: float | None
    minimum: float
    maximum: float


class Effect(TypedDict):
    """The change in percent of the base, with its confidence interval."""

    percent: float
    low: float
    high: float
    level: str
    observations: list[int]
    p: float
    equivalence_low: float
    equivalence_high: float
    detectable: float | None


class TestVerdict(TypedDict):
    """The result of a comparison for one test."""

    test: str
    title: str
    unit: str
    direction: str
    verdict: str
    lack: str | None
    words: str
    difference: str
    evidence: str
    effect: Effect | None
    a: Summary | None
    b: Summary | None
    boots: list[int]
    boots_differ: bool
    more_boots: int | None
    lean: float | None
    cautions: list[str]


class Function(TypedDict):
    """A function of a counted kernel whose cost differs."""

    name: str
    instructions: float
    locked: float
    accesses: float


class Load(TypedDict):
    """A load of two counted kernels."""

    load: str
    unit: str
    verdict: str
    base: float
    other: float
    spread: float
    unexplained: float
    functions: list[Function]


class Comparison(TypedDict):
    """One side against another in every test."""

    base: str
    other: str
    confidence: float
    margin: float
    verdicts: dict[str, int]
    words: str
    tests: list[TestVerdict]
    loads: list[Load]
    text: str
    page: str


class Point(TypedDict):
    """A commit or a run."""

    at: str | None
    run: int
    revision: str
    mean: float
    environment: str


class Series(TypedDict):
    """The series of a timeline."""

    name: str
    points: list[Point]


class Fact(TypedDict):
    """A property of a host that changed."""

    name: str
    before: str
    after: str


class HostChange(TypedDict):
    """Hosts that changed between two runs."""

    testbed: str
    run: int
    facts: list[Fact]


class Spot(TypedDict):
    """A point of a series."""

    revision: str
    run: int


class LevelChange(TypedDict):
    """A change point of a series."""

    series: str
    verdict: str
    since: Spot
    until: Spot
    before: float
    after: float
    percent: float | None
    low: float | None
    high: float | None
    cautions: list[str]


class TimelineOut(TypedDict):
    """A test over commits or runs."""

    test: str
    by: str
    unit: str
    direction: str | None
    series: list[Series]
    left_out: list[str]
    changes: list[HostChange]
    levels: list[LevelChange]
    page: str


class Machine(TypedDict):
    """A host of a testbed."""

    role: str
    name: str


class OutageOut(TypedDict):
    """A period in which a testbed takes no runs."""

    kind: str
    why: str
    by: str
    since: str


class HealthCheckOut(TypedDict):
    """The latest health check of the hosts of a testbed, which precedes each run."""

    at: str
    holder: str
    problems: list[str]
    facts: dict[str, Any]


class TestbedRow(TypedDict):
    """A testbed and its state."""

    name: str
    origin: str
    simulated: bool
    sample: str
    good: bool
    words: str
    holder: str | None
    outages: list[OutageOut]
    checked: HealthCheckOut | None
    hosts: list[Machine]
    newest_runs: list[int]
    url: str
    page: str


class Service(TypedDict):
    """The new state of a testbed."""

    name: str
    outages: list[OutageOut]


class Waiting(TypedDict):
    """A queued run."""

    number: int
    testbed: str
    plan: str
    requested_by: str
    priority: str
    created: str
    seconds_to_start: int | None
    url: str
    page: str


class Queue(TypedDict):
    """The queue, by testbed and in order."""

    items: list[Waiting]


class CommitOut(TypedDict):
    """A commit of a tracked branch."""

    sha: str
    position: int | None
    subject: str
    author: str
    committed: str


class MovementOut(TypedDict):
    """A test that changed, in percent."""

    test: str
    variant: str
    better: bool
    suspected: float
    percent: float | None
    low: float | None
    high: float | None
    confirmed: bool | None


class StepOut(TypedDict):
    """A step in the life of an alert, or a comment."""

    at: str
    state: str
    who: str
    text: str


class CheckOut(TypedDict):
    """A run that measured a commit in turn with the last one before the change."""

    commit: CommitOut
    run: int


class AlertRow(TypedDict):
    """Changes between two commits that belong together."""

    number: int
    branch: str
    origin: str
    simulated: bool
    sample: str
    state: str
    since: CommitOut
    until: CommitOut
    commit: CommitOut | None
    probability: float | None
    conclusion: str
    owner: str | None
    due: str | None
    created: str
    movements: list[MovementOut]
    url: str
    page: str


class AlertDetail(AlertRow):
    """An alert with its history."""

    steps: list[StepOut]
    checks: list[CheckOut]
