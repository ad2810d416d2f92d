# SPDX-License-Identifier: BSD-2-Clause
"""Makes the bundles of samples again: `./dev bench samples`.

The service itself makes everything on an empty database: it imports the published series, lists the commits of a
branch of forty, queues their runs, suspects, confirms and bisects, and receives submissions. Only the measurements are
drawn at random around typical values, and each run has a note about that; the same seeds give the same values.
The bundle of the simulated machine is really simulated: docs/howto/developers.md has its commands.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from perfweb.accounts.actors import Actor
    from perfweb.runs.models import Run
    from perfweb.tracking.models import TrackedBranch

ROOT = Path(__file__).resolve().parents[2]
FREEBSD = ROOT / "tests/unit/imports/data/freebsd-head-2015-forwarding.csv"
BUNDLES = ROOT / "perfweb/samples/bundles"
COMMITS = 40
SLOWER, FASTER, PHANTOM, LAYOUT = 12, 20, 28, 35
"""Commits from which all is slower, faster again, seems slower, and is slower by accident."""
LEVELS = {SLOWER: 0.93, FASTER: 1.08, LAYOUT: 0.955}
PHANTOM_LEVEL = 0.97
SUBJECTS = {
    1: "net: count interfaces once",
    SLOWER: "tcp: check the whole option list of each segment",
    FASTER: "mbuf: take a cluster from the cache of the CPU",
    PHANTOM: "udp: name the checksum's argument",
    LAYOUT: "net: sort the prototypes",
}
DRAWN = "made up: drawn at random around typical ones, and never measured"
ELSEWHERE = "measured elsewhere in 2015 by netbenches (Olivier Cochard-Labbé, BSD licence), and imported"


def make_branch(tree: Path) -> TrackedBranch:
    """Track forty commits, one after the other, until nothing is left to do."""
    from django.conf import settings

    from perfweb.tracking import services
    from perfweb.tracking.models import AlertState
    from tests.checkouts import small_checkout
    from tests.laboratory import Laboratory, tracked

    @dataclass
    class Sampled(Laboratory):
        """Some commits seem slower in the two boots of their own run, and no longer in later ones."""

        phantom: set[str] = field(default_factory=set)
        seen: Counter[tuple[str, str]] = field(default_factory=Counter)

        def level(self, sha: str, test: str) -> float:
            self.seen[sha, test] += 1
            first = sha in self.phantom and self.seen[sha, test] <= 2
            return self.speed[sha] * (PHANTOM_LEVEL if first else 1.0)

    settings.PATCH_REPOSITORY = tree
    laboratory = Sampled(small_checkout(tree), noise=0.003, seed=45)
    speed, shas = 1.0, list[str]()
    for number in range(1, COMMITS + 1):
        speed *= LEVELS.get(number, 1.0)
        shas.append(_commit(laboratory, number, speed))
        if PHANTOM <= number < PHANTOM + 5:
            laboratory.phantom.add(shas[-1])
    branch = None
    for until in range(1, COMMITS + 1):
        laboratory.checkout.git("update-ref", "refs/heads/tracked", shas[until - 1])
        branch = branch or tracked(shas[0], name="main", branch="tracked")
        laboratory.rest()
    assert branch is not None
    for alert in branch.alerts.filter(state=AlertState.CONFIRMED).select_related("culprit"):
        if alert.culprit and alert.culprit.sha == shas[LAYOUT - 1]:
            update = services.AlertUpdate(AlertState.INFRASTRUCTURE, text="Only the layout of the code differs.")
            services.update_alert(_maintainer(), alert.number, update)
    return branch


def _commit(laboratory: object, number: int, speed: float) -> str:
    from tests.laboratory import Laboratory

    assert isinstance(laboratory, Laboratory)
    date = (datetime(2026, 9, 1, 10, tzinfo=UTC) + timedelta(days=2 * number)).isoformat()
    os.environ |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    laboratory.checkout.put("stack/net/number.c", f"int number = {number};\n")
    sha = laboratory.checkout.commit(SUBJECTS.get(number, f"net: note {number}"))
    laboratory.speed[sha] = speed
    return sha


def make_submissions(tree: Path) -> None:
    """Submit five patches, each of which ends in another state; the approved one is measured."""
    from perfweb.runs.planfile import read_plan
    from perfweb.submissions import services
    from tests.checkouts import Checkout
    from tests.factories import create_measurements

    checkout, author = Checkout(tree), _account("ada", "SUBMITTER")

    def submit(place: int, title: str, old: str = "line") -> int:
        checkout.edit("stack/net/if.c", lambda text: text.replace(f"int line{place};", f"int name{place};"))
        patch = checkout.diff().replace(f"-int line{place};".encode(), f"-int {old}{place};".encode())
        wanted = services.SubmissionRequest("demo", "tcp-quick", title=title)
        return services.submit(author, patch, wanted).number

    submit(3, "net: rename a field that is gone", old="gone")
    submit(8, "net: take the lock of an interface later")
    approved = services.approve(_maintainer(), submit(13, "tcp: acknowledge every second segment"))
    for run in approved.runs.all():
        tests = [test.name for test in read_plan(run.plan.text).tests]
        create_measurements(run, tests, 0.004, 5, lambda variant, _: 1.0 if variant == "base" else 1.06, 5)
    refused = submit(18, "net: spin instead of sleeping")
    services.refuse(_maintainer(), refused, "It starves the other threads of its CPU.")
    services.cancel(author, submit(23, "udp: check the checksum twice"))


def make_runs() -> None:
    """Make a run for each thing that the pages can warn of, a knob matrix and an A/A calibration."""
    from perfweb.runs.models import BootState
    from tests.factories import (
        DEMO_TESTS,
        create_artefact,
        create_calibrated,
        create_knob_run,
        create_measurements,
        create_queued_run,
        create_run,
        create_variants,
        create_watched_run,
        faster_later,
    )

    _entitle(create_knob_run(), "Dispatch and CPUs in every combination")
    _entitle(create_calibrated(), "Equal variants: the noise of the testbed")
    _entitle(create_run(boots=4, failed_test=DEMO_TESTS[3]), "A test that fails")
    drift = create_watched_run(level=faster_later)
    _entitle(drift, "A machine that gets faster during the run", "sentinel: {every: 2}\n")
    modes = create_queued_run()
    create_variants(modes)
    rng = random.Random(45)
    create_measurements(modes, DEMO_TESTS[:2], 0.003, 6, lambda *_: rng.choice((1.0, 1.15)), 12)
    _entitle(modes, "Boots in two modes")
    panic = create_run(boots=3)
    boot = panic.boots.order_by("position")[2]
    boot.state, boot.error = BootState.CRASHED, "panic: mbuf freed twice"
    boot.save()
    boot.measurements.all().delete()
    log = "stack: 1 CPU\nstack: up\npanic: mbuf freed twice\nm_free() at stack/kern/mbuf.c\n"
    create_artefact(panic, f"boots/{boot.position:03d}-panic.log", log, boot=boot)
    _entitle(panic, "A boot that panics")


def _entitle(run: Run, title: str, more: str = "") -> None:
    from django.utils.text import slugify

    from tests.factories import PLAN_TEXT, create_plan

    name = slugify(title)[:60]
    text = PLAN_TEXT.replace("direct-or-deferred", name).replace("Direct against deferred dispatch", title) + more
    run.refresh_from_db()
    run.plan = create_plan(text, name, title)
    run.save(update_fields=["plan"])


def _maintainer() -> Actor:
    return _account("grace", "MAINTAINER")


def _account(name: str, role: str) -> Actor:
    from perfweb.accounts.actors import Actor
    from perfweb.accounts.models import Means, Role, User

    user, _ = User.objects.get_or_create(username=name, defaults={"role": Role[role]})
    return Actor(user.username, user.role, Means.PAGE, user=user)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
    django.setup()
    from django.core.management import call_command

    from perfweb.lab.models import Testbed
    from perfweb.runs.models import Run
    from perfweb.runs.summaries import summarise
    from perfweb.samples.bundles import SUFFIX
    from tests.factories import create_testbed

    if Run.objects.exists():
        raise SystemExit("bench: the database has runs already: remove the directory samples in PERFWEB_VAR")
    call_command(
        "import", "csv", FREEBSD, column=["value=pps", "variant=test", "testbed=host"], unit="packets/s",
        boot_per_sample=True, test="forward.udp/host-router-host/ipv4", plan="freebsd-head-2015",
        origin="netbenches, Olivier Cochard-Labbé, BSD licence",
    )  # fmt: skip
    elsewhere = Testbed.objects.get().name
    create_testbed()
    make_runs()
    with tempfile.TemporaryDirectory() as tree:
        make_branch(Path(tree))
        make_submissions(Path(tree))
    drawn = Run.objects.filter(imported=None)
    drawn.filter(reason="").update(reason=f"sample values, {DRAWN}")
    summarise(list(drawn.values_list("pk", flat=True)))
    BUNDLES.mkdir(exist_ok=True)
    call_command("save_samples", BUNDLES / f"freebsd{SUFFIX}", f"{elsewhere}=netgate-4860", origin=ELSEWHERE)
    call_command("save_samples", BUNDLES / f"drawn{SUFFIX}", "demo=drawn", origin=DRAWN)


if __name__ == "__main__":
    main()
