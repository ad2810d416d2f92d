# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py replay BUNDLE`: analyses a run's archive again, or (`--run`) measures its plan here."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.permissions import Action
from perfweb.rawdata.replay.analysis import DIGITS, analyse, differences
from perfweb.rawdata.replay.bundle import Bundle, read_bundle
from perfweb.rawdata.replay.tarwalk import BundleError
from perfweb.reports.following import follow_to_its_verdict
from perfweb.runs import services
from perfweb.runs.planfile import PlanError
from perfweb.verdicts.text import comparison_text

MOST_SHOWN = 50
"""Max number of printed differences."""


class Command(BaseCommand):
    help = (
        "Analyses the raw.tar of a run again with the code of this checkout, without a database, and ends with status "
        "1 if a verdict or a number is another one. With --run it measures the plan of the bundle on a testbed here."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("bundle", type=Path, help="raw.tar of a run, as downloaded")
        parser.add_argument("--run", action="store_true", help="measure its plan here, boots in the same order")
        parser.add_argument("--testbed", default="demo", help="where, with --run (default: demo)")

    def handle(self, *_: Any, **options: Any) -> None:
        path: Path = options["bundle"]
        try:
            bundle = read_bundle(path)
            compared = analyse(bundle)
        except BundleError as error:
            raise CommandError(f"{path} is refused: {error}") from None
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror}") from None
        origin = f"Run {bundle.number} of testbed {bundle.testbed}, seed {bundle.seed}: {bundle.title}"
        self.stdout.write(f"{origin}\n{bundle.members} members, all with the right SHA-256\n")
        for pair in compared:
            self.stdout.write(comparison_text(pair.a.name, pair.b.name, bundle.confidence, pair.compared) + "\n")
        if found := differences(bundle, compared):
            more = [f"and {len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []
            raise CommandError("\n".join([f"{len(found)} values differ:", *found[:MOST_SHOWN], *more]))
        self.stdout.write(
            f"{len(bundle.verdicts)} verdicts: each of them, and each of their numbers to {DIGITS} digits, is the one "
            "in the bundle."
        )
        if options["run"]:
            self._measure(bundle, options["testbed"])

    def _measure(self, bundle: Bundle, testbed: str) -> None:
        if bundle.patches:
            raise CommandError(f"the bundle has {bundle.patches} patches, which this program cannot apply yet")
        for variant in bundle.variants:
            if variant.revision:
                self.stdout.write(f"{variant.name} was built from {variant.revision}; here this checkout is built.")
        try:
            with audit.action(on_server(), Action.SUBMIT, detail="replay of a bundle") as entry:
                run = services.submit(bundle.plan, testbed, seed=bundle.seed)
                entry.subject = f"run {run.number}"
        except PlanError as error:
            raise CommandError(f"plan.yaml of the bundle cannot be measured: {error}") from None
        except services.RunError as error:
            raise CommandError(str(error)) from None
        follow_to_its_verdict(run.number, self.stdout)
