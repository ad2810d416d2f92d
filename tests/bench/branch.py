# SPDX-License-Identifier: BSD-2-Clause
"""Checks that tracking finds planted changes: `./dev bench branch`.

It makes a repository with that many commits of this stack. Five of them change the speed of TCP on the simulated
machine, and the others nothing. The running service tracks it, unattended, until nothing is left to do. Then the bench
prints for each planted change whether it was found and which commit was blamed, the number of false alerts, and the
testbed time. The changes are computed for the present stack, so that they have their nominal cost. The simulated
machine is deterministic, so that even a change of a percent is beyond its noise. On ten CPUs the interleaving is
random, and eight boots have eight seeds.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import django

from tests.bench.burdens import FILE, Burden, SimulatedStack, chained, shifts

if TYPE_CHECKING:
    from perfweb.tracking.models import Alert, TrackedBranch

ONE, TEN = "simulated.tcp.1/host-host/ipv4", "simulated.tcp.10/host-host/ipv4"
PLAN = f"""\
name: planted
title: TCP and forwarding on the simulated machine
baseline: default
variants: [{{name: default, target: sim, source: commit}}]
tests: [{ONE}, {TEN}, simulated.forward.1/host-host/ipv4]
boots: 8
samples: 8
"""
QUIET = timedelta(seconds=60)
"""Seconds without activity that end the bench: tracking makes a round every ten seconds."""


@dataclass(frozen=True)
class Planted:
    """A change at the commit of that number: percent by which TCP with one stream, or with ten streams only,
    changes.
    """

    number: int
    subject: str
    percent: float = 0
    crowd: bool = False


# The first commit has a burden already, so that a later commit can remove it.
PLANTED = (
    Planted(11, "-1 %", -1),
    Planted(21, "-3 %", -3),
    Planted(32, "+12 %", 12),
    Planted(42, "-7 %", -7),
    Planted(52, "slower at 10 streams, nothing to speak of at one", crowd=True),
)


def fitted(stack: SimulatedStack) -> dict[int, Burden]:
    """Return the burden from each number of a commit on, with which each change has its nominal size."""

    @functools.cache
    def rates(turns: int) -> list[float]:
        return stack.rates(Burden(turns))

    changes = [planted for planted in PLANTED if planted.percent]
    turns = chained(rates, [planted.percent for planted in changes])
    burdens = {1: Burden(turns[0])}
    for planted, (before, after) in zip(changes, itertools.pairwise(turns), strict=True):
        by = statistics.fmean(shifts(rates(before), rates(after)))
        print(f"{planted.subject}: {after} turns after {before}, {by:+.2f} %", flush=True)
        burdens[planted.number] = Burden(after)
    return burdens | {planted.number: Burden(turns[-1], crowd=True) for planted in PLANTED if planted.crowd}


def make_repository(tree: Path, commits: int) -> dict[int, str]:
    """Make a repository of that many commits in an empty directory; return their hashes by number, from 1."""
    shutil.rmtree(tree, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        copy_stack(Path(scratch))
        burdens = fitted(SimulatedStack(Path(scratch), Path(".venv/bin/meson").absolute()))
    copy_stack(tree)
    original = (tree / FILE).read_text(encoding="utf-8")
    _git(tree, "init", "-q", "-b", "main")
    subjects = {1: "the stack, with a burden", **{planted.number: planted.subject for planted in PLANTED}}
    made = {}
    for number in range(1, commits + 1):
        if number in burdens:
            (tree / FILE).write_text(burdens[number].planted(original), encoding="utf-8")
        with (tree / "stack/netinet/udp_usrreq.c").open("a", encoding="utf-8") as file:
            file.write(f"/* Note {number}. */\n")
        subject = f"tcp: {subjects[number]}" if number in subjects else f"netinet: note {number}"
        made[number] = _commit(tree, number, subject)
    return made


def copy_stack(tree: Path) -> None:
    """Export the stack of the last commit."""
    source = Path(__file__).resolve().parents[2]
    tree.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "archive", "HEAD", "stack"], cwd=source, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=tree, check=True, input=archive)


def _commit(tree: Path, number: int, subject: str) -> str:
    _git(tree, "add", "--all")
    _git(tree, "commit", "-q", "-m", subject, date=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number))
    return _git(tree, "rev-parse", "HEAD").strip()


def _git(tree: Path, *words: str, date: datetime | None = None) -> str:
    who = {"NAME": "Perfweb developers", "EMAIL": "dev@perfweb.invalid", **({"DATE": date.isoformat()} if date else {})}
    identity = {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in who.items()}
    command = ["git", "-c", "commit.gpgsign=false", *words]
    return subprocess.run(
        command, cwd=tree, check=True, capture_output=True, text=True, env=os.environ | identity
    ).stdout


def start(tree: Path, name: str, first: str, every: int) -> TrackedBranch:
    """Make the service track the repository."""
    from perfweb.accounts.actors import on_server
    from perfweb.builds.models import Mirror
    from perfweb.tracking.services import BranchRequest, track

    Mirror.objects.update_or_create(name=name, defaults={"url": str(tree), "branch": "main"})
    rhythm = "every" if every > 1 else "push"
    wanted = BranchRequest(name, PLAN, "sim", mirror=name, branch="main", since=first, rhythm=rhythm, every=every)
    return track(on_server(), wanted)


def wait(branch: TrackedBranch) -> None:
    """Wait until nothing has happened for a while."""
    from django.utils import timezone

    from perfweb.tracking.models import AlertStep
    from perfweb.tracking.scheduler import is_working

    busy, seen = timezone.now(), 0
    while timezone.now() - busy < QUIET:
        time.sleep(5)
        if is_working(branch):
            busy = timezone.now()
        for step in AlertStep.objects.filter(alert__branch=branch, pk__gt=seen).order_by("pk"):
            seen, busy = step.pk, timezone.now()
            print(f"{step.at:%H:%M:%S} {step.alert}: {step.get_to_state_display() or step.text}", flush=True)


def report(branch: TrackedBranch, made: dict[int, str]) -> bool:
    """Print the result; return whether exactly the planted changes were found."""
    from perfweb.runs.models import Run
    from perfweb.tracking.models import AlertState

    alerts = list(
        branch.alerts.exclude(state=AlertState.REFUTED).select_related("culprit").prefetch_related("movements")
    )
    planted = {made[one.number]: one for one in PLANTED}
    print("\n| planted | commit | alert | what moved, measured in turn | probability |\n|---|---|---|---|---|")
    for sha, one in planted.items():
        alert = next((alert for alert in alerts if alert.culprit and alert.culprit.sha == sha), None)
        cells = f"{alert.number} | {moved(alert)} | {alert.probability:.3f}" if alert else "**not found** | |"
        print(f"| {one.subject} | {one.number} | {cells} |")
    false = [alert for alert in alerts if not alert.culprit or alert.culprit.sha not in planted]
    for alert in false:
        print(f"false or unfinished: alert {alert.number} at {alert.culprit or alert.until}: {alert.conclusion}")
    of_commits = Run.objects.filter(tracked_commits__branch=branch)
    of_checks = Run.objects.filter(check_of__alert__branch=branch)
    for what, runs in (("measuring commits", of_commits), ("confirming and bisecting", of_checks)):
        spent = sum(((run.ended - run.started) for run in runs if run.ended and run.started), timedelta())
        print(f"{what}: {len(runs)} runs, {spent.total_seconds() / 60:.1f} min of machine time")
    found = {alert.culprit.sha for alert in alerts if alert.culprit} & planted.keys()
    print(f"{len(found)} of {len(planted)} planted changes found, {len(false)} false alarms")
    return len(found) == len(planted) and not false


def moved(alert: Alert) -> str:
    """Return the tests of an alert in words."""
    from perfweb.tracking.alerts.confirming import in_words

    return "; ".join(in_words(movement) for movement in alert.movements.all() if movement.confirmed)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench branch", description=__doc__)
    parser.add_argument("--var", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--commits", type=int, default=60, help=f"of them, {PLANTED[-1].number} at least (60)")
    parser.add_argument("--every", type=int, default=3, help="the rhythm: every commit is 1 (3)")
    options = parser.parse_args()
    if options.commits < PLANTED[-1].number:
        parser.error(f"the last change is planted at commit {PLANTED[-1].number}: --commits has to be that or more")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
    django.setup()
    name = f"planted-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    tree = options.var / "bench" / name
    made = make_repository(tree, options.commits)
    branch = start(tree, name, made[1], options.every)
    print(f"{branch}: {options.commits} commits, on /tracking/{branch}/", flush=True)
    wait(branch)
    raise SystemExit(0 if report(branch, made) else 1)


if __name__ == "__main__":
    main()
