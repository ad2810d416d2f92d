# SPDX-License-Identifier: BSD-2-Clause
"""The accuracy of all of tracking with noisy measurements: `./dev bench noise`.

A branch of sixty commits grows commit by commit. Five of them change the speed of two tests (one of them of only one
test), in another order and at other places on each branch. The service's own rounds list the commits, queue runs,
suspect, confirm, bisect and notify. Only the measurements are simulated: the wanted number of boots, whose deviations
are drawn from recorded A/A boots (tests/bench/data), scaled to `noise` percent. A change counts as found if a confirmed
alert blames its commit, and as nearly found if the alert names a range with it, or another commit of the range; all
other confirmed alerts are false. Every number depends on the seed alone.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import django

from tests.bench.tracking import DOCUMENT, recorded_noise
from tests.stack.races import replace_between

if TYPE_CHECKING:
    from perfweb.tracking.models import Alert, TrackedBranch

COMMITS = 60
SIZES = (-1.0, -3.0, 12.0, -7.0, -15.0)
ONE_TEST = -15.0
"""The size of the change in only one of the tests."""
PLACES = (11, 21, 31, 41, 51)
NOISES = (0.2, 1.0, 3.0)
WITHIN = 0.3
"""The deviation of the samples of a boot, as a share of that of boots."""
BEGIN, END = "<!-- noise: ./dev bench noise --write -->", "<!-- end of noise -->"


@dataclass
class Score:
    """The results for the changes on some branches: by size, the numbers of found and of nearly found ones."""

    found: Counter[float] = field(default_factory=Counter)
    beside: Counter[float] = field(default_factory=Counter)
    planted: Counter[float] = field(default_factory=Counter)
    false: int = 0
    refuted: int = 0
    commits: int = 0
    runs: int = 0
    checks: int = 0

    def row(self, noise: float) -> str:
        """A line of the table."""
        cells = [f"{noise:g} %"]
        for size in SIZES:
            beside = f" + {self.beside[size]}" if self.beside[size] else ""
            cells.append(f"{self.found[size]}{beside} of {self.planted[size]}")
        hundred = self.commits / 100
        cells += [f"{self.false / hundred:.1f}", f"{self.refuted / hundred:.1f}"]
        cells.append(f"{self.runs / self.commits:.2f} + {self.checks / self.commits:.2f}")
        return f"| {' | '.join(cells)} |"


def plant(rng: random.Random) -> dict[int, float]:
    """The changes of a branch by the number of their commit."""
    sizes = list(SIZES)
    rng.shuffle(sizes)
    return {place + rng.randint(-2, 2): size for place, size in zip(PLACES, sizes, strict=True)}


def follow(name: str, tree: Path, noise: float, seed: int, score: Score) -> None:
    """Track a branch from its first commit to its last, and add up the results."""
    from django.conf import settings

    from perfweb.accounts.actors import on_server
    from perfweb.runs.models import Run
    from perfweb.tracking.services import BranchRequest, pause, track
    from tests.checkouts import small_checkout
    from tests.laboratory import PLAN, STREAM, Laboratory

    rng, pool = random.Random(seed), recorded_noise()

    class Noisy(Laboratory):
        """Return the speed of a commit on a boot with a deviation."""

        def level(self, sha: str, test: str) -> float:
            here = self.speed[sha] * (only[sha] if test == STREAM else 1.0)
            return float(here * (1 + rng.choice(pool) * noise))

    changes, only = plant(rng), dict[str, float]()
    settings.PATCH_REPOSITORY = tree
    laboratory = Noisy(small_checkout(tree), noise * WITHIN / 100, seed=seed)
    laboratory.checkout.put("stack/net/name.c", f"/* {name} */\n")  # builds of equal sources would be one build
    speed, one, planted = 1.0, 1.0, dict[str, float]()
    branch = None
    for number in range(1, COMMITS + 1):
        size = changes.get(number, 0.0)
        speed, one = (speed, one * (1 + size / 100)) if size == ONE_TEST else (speed * (1 + size / 100), one)
        sha = laboratory.commit(number, speed)
        only[sha] = one
        if size:
            planted[sha] = size
        branch = branch or track(
            on_server(), BranchRequest(name=name, plan=PLAN, testbed="demo", branch="main", since=sha)
        )
        laboratory.rest()
    assert branch is not None
    branch.refresh_from_db()
    if branch.problem:
        raise SystemExit(f"{branch} could not be tracked: {branch.problem}")
    pause(on_server(), branch.name, active=False)
    judge(branch, planted, score)
    score.commits += COMMITS
    score.runs += Run.objects.filter(tracked_commits__branch=branch).count()
    score.checks += Run.objects.filter(check_of__alert__branch=branch).count()


def judge(branch: TrackedBranch, planted: dict[str, float], score: Score) -> None:
    """Add up the alerts of a branch for its planted changes."""
    from perfweb.tracking.models import AlertState

    score.planted.update(planted.values())
    left = dict(planted)
    for alert in branch.alerts.select_related("since", "until", "culprit"):
        if alert.state == AlertState.REFUTED:
            score.refuted += 1
        elif alert.culprit and alert.culprit.sha in left:
            score.found[left.pop(alert.culprit.sha)] += 1
        elif near := left.keys() & suspects(alert):
            score.beside[left.pop(near.pop())] += 1
        else:
            score.false += 1
            print(f"false: {alert} of {branch}, {alert.since} to {alert.until}: {alert.conclusion}")


def suspects(alert: Alert) -> set[str]:
    """The commits in the range of an alert."""
    between = alert.branch.commits.filter(position__gt=alert.since.position, position__lte=alert.until.position)
    return set(between.values_list("sha", flat=True))


def fits(done: int, seconds: float, minutes: float) -> bool:
    """Return whether another round of branches ends in time, if it takes as long as the average of those done."""
    return done == 0 or seconds / done * (done + 1) <= 60 * minutes


def table(scores: dict[float, Score], branches: int) -> str:
    """Return the results in Markdown."""
    sizes = " | ".join(f"{size:+g} %{' in one test' if size == ONE_TEST else ''}" for size in SIZES)
    head = f"| noise of a boot | {sizes} | false alarms | refuted suspicions | runs: commits + checks |"
    lines = [head, "|---" * (len(SIZES) + 4) + "|", *(score.row(noise) for noise, score in scores.items())]
    words = (
        f"Each row has {branches} branches of {COMMITS} commits with two tests and two boots for each commit. A change "
        "is found if its commit is blamed; *+* counts bisections that end with a range around it, or another commit of "
        "that range. False alarms (confirmed) and refuted suspicions are per hundred commits, runs per commit."
    )
    return f"{words}\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench noise", description=__doc__)
    parser.add_argument("--branches", type=int, default=20, help="for each noise (20)")
    parser.add_argument(
        "--minutes", type=float, default=10, help="start no round of branches that would end later (10)"
    )
    parser.add_argument("--write", action="store_true", help=f"put the table into {DOCUMENT.name}")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
    django.setup()
    from perfweb.runs.models import Run, RunState
    from perfweb.tracking.models import TrackedBranch
    from tests.factories import create_testbed

    create_testbed()
    TrackedBranch.objects.update(active=False)  # an interrupted bench has left one, and maybe a run
    Run.objects.filter(state=RunState.QUEUED).delete()
    begun = f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    scores, started, done = {noise: Score() for noise in NOISES}, time.monotonic(), 0
    while done < options.branches and fits(done, time.monotonic() - started, options.minutes):
        for noise, score in scores.items():
            with tempfile.TemporaryDirectory() as tree:
                name = f"noise-{begun}-{noise:g}-{done}".replace(".", "_")
                follow(name, Path(tree), noise, done, score)
            print(f"branch {done + 1} of {options.branches}: {score.row(noise)}", flush=True)
        done += 1
    text = table(scores, done)
    print(text)
    if options.write:
        replace_between(DOCUMENT, BEGIN, END, text)


if __name__ == "__main__":
    main()
