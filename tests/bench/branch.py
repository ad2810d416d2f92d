# SPDX-License-Identifier: BSD-2-Clause
"""Whether tracking finds what was planted: `./dev bench branch`.

It makes a repository with so many commits of this stack, of which five change how fast TCP is on the simulated machine
and the others nothing, has the running service track it, and waits without touching anything until nothing is left to
do. Then it says of each planted change whether it was found and which commit was blamed, how many alerts were false,
and how much machine time all took. The simulated machine says the same in every run, so that even a change of a percent
is beyond its noise; on ten CPUs chance decides who meets whom, and eight boots have eight seeds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import django

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
FILE = "stack/netinet/tcp_input.c"
FUNCTION = "void\ntcp_segment(struct mbuf *m, unsigned hlen)\n{\n"
FIRST = "\taf->af_endpoints(m, &sg.sg_conn);\n\t/*"
QUIET = timedelta(seconds=60)
"""How long nothing happens at the end: tracking looks around every ten seconds."""


@dataclass(frozen=True)
class Planted:
    """A change with the commit of that number: what each segment is burdened with from then on."""

    number: int
    subject: str
    turns: int
    crowd: bool = False


# Turns of an empty loop.  The first commit has some already, so that there is something to gain.  More turns are not
# always slower, and near a jump one seed of eight may move by more than all others: these are where TCP with one
# stream, simulated with the seeds of eight boots, moves by what the name says with each of them.
PLANTED = (
    Planted(1, "the stack, with a burden", 263),
    Planted(11, "-1 %", 290),
    Planted(21, "-3 %", 318),
    Planted(32, "+12 %", 27),
    Planted(42, "-7 %", 262),
    Planted(52, "slower at 10 streams, nothing to speak of at one", 262, crowd=True),
)


def planted_text(original: str, planted: Planted) -> str:
    """The file with the burden.  Raises SystemExit where it is not as it was when this was written."""
    if FUNCTION not in original or FIRST not in original:
        raise SystemExit(f"{FILE} has another tcp_segment() now: tests/bench/branch.py plants its changes there")
    body = f"\tfor (volatile unsigned n = 0; n < {planted.turns}; n++)\n\t\tcontinue;\n" if planted.turns else ""
    globals_ = ""
    if planted.crowd:
        globals_ = "static struct {\n\t_Alignas(64) atomic_u32 seen;\n} crowd[128];\n\n"
        body += "\tfor (unsigned n = 0; n < mach_ncpus(); n++)\n\t\tatomic_count_u32(&crowd[n].seen, 1);\n"
    return original.replace(FUNCTION, globals_ + FUNCTION, 1).replace(FIRST, body + FIRST, 1)


def make_repository(tree: Path, commits: int) -> dict[int, str]:
    """A repository of so many commits in an empty directory; their hashes by number, from 1."""
    source = Path(__file__).resolve().parents[2]
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD", "stack"], cwd=source, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=tree, check=True, input=archive)
    original = (tree / FILE).read_text(encoding="utf-8")
    _git(tree, "init", "-q", "-b", "main")
    made = {}
    for number in range(1, commits + 1):
        subject = f"netinet: note {number}"
        for planted in PLANTED:
            if planted.number == number:
                (tree / FILE).write_text(planted_text(original, planted), encoding="utf-8")
                subject = f"tcp: {planted.subject}"
        with (tree / "stack/netinet/udp_usrreq.c").open("a", encoding="utf-8") as file:
            file.write(f"/* Note {number}. */\n")
        made[number] = _commit(tree, number, subject)
    return made


def _commit(tree: Path, number: int, subject: str) -> str:
    _git(tree, "add", "--all")
    _git(tree, "commit", "-q", "-m", subject, date=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number))
    return _git(tree, "rev-parse", "HEAD").strip()


def _git(tree: Path, *words: str, date: datetime | None = None) -> str:
    who = {"NAME": "Perfweb developers", "EMAIL": "dev@perfweb.invalid", **({"DATE": date.isoformat()} if date else {})}
    told = {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in who.items()}
    command = ["git", "-c", "commit.gpgsign=false", *words]
    return subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True, env=os.environ | told).stdout


def start(tree: Path, name: str, first: str, every: int) -> TrackedBranch:
    """Has the service track the repository."""
    from perfweb.accounts.actors import on_server
    from perfweb.builds.models import Mirror
    from perfweb.tracking.services import Wanted, track

    Mirror.objects.update_or_create(name=name, defaults={"url": str(tree), "branch": "main"})
    rhythm = "every" if every > 1 else "push"
    wanted = Wanted(name, PLAN, "sim", mirror=name, branch="main", since=first, rhythm=rhythm, every=every)
    return track(on_server(), wanted)


def wait(branch: TrackedBranch) -> None:
    """Until nothing has happened for a while."""
    from django.utils import timezone

    from perfweb.tracking.attending import is_working
    from perfweb.tracking.models import AlertStep

    busy, told = timezone.now(), 0
    while timezone.now() - busy < QUIET:
        time.sleep(5)
        if is_working(branch):
            busy = timezone.now()
        for step in AlertStep.objects.filter(alert__branch=branch, pk__gt=told).order_by("pk"):
            told, busy = step.pk, timezone.now()
            print(f"{step.at:%H:%M:%S} {step.alert}: {step.get_to_state_display() or step.text}", flush=True)


def report(branch: TrackedBranch, made: dict[int, str]) -> bool:
    """Prints what was found; tells whether that is everything that was planted, and nothing else."""
    from perfweb.runs.models import Run
    from perfweb.tracking.models import AlertState

    alerts = list(
        branch.alerts.exclude(state=AlertState.REFUTED).select_related("culprit").prefetch_related("movements")
    )
    planted = {made[one.number]: one for one in PLANTED[1:]}
    print("\n| planted | commit | alert | what moved, measured in turn | probability |\n|---|---|---|---|---|")
    for sha, one in planted.items():
        alert = next((alert for alert in alerts if alert.culprit and alert.culprit.sha == sha), None)
        told = f"{alert.number} | {moved(alert)} | {alert.probability:.3f}" if alert else "**not found** | |"
        print(f"| {one.subject} | {one.number} | {told} |")
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
    """The tests that an alert is about, in words."""
    from perfweb.tracking.confirming import in_words

    return "; ".join(in_words(movement) for movement in alert.movements.all() if movement.confirmed)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench branch", description=__doc__)
    parser.add_argument("--var", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--commits", type=int, default=60, help="of the repository (60)")
    parser.add_argument("--every", type=int, default=3, help="the rhythm: every commit is 1 (3)")
    options = parser.parse_args()
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
