# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py calibrate TESTBED [--minutes 15]`: queues a run that measures the same under two names (A/A)."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.permissions import Action
from perfweb.runs import services
from perfweb.runs.calibration import TESTS, TITLES, plan_text
from perfweb.runs.planfile import PlanError


class Command(BaseCommand):
    help = "Queues an A/A run that measures the noise of tests on a testbed, and the rate of false positives."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("testbed", help="name of a registered testbed")
        parser.add_argument("--target", choices=list(TITLES), default="stack", help="target (stack)")
        parser.add_argument("--minutes", type=float, default=15, help="approximate time of measuring (15)")
        parser.add_argument("--test", action="append", dest="tests", metavar="TEST",
            help=f"repeatable; default: {', '.join(TESTS)}",
        )  # fmt: skip

        parser.add_argument("--layouts", action="store_true",
            help="boot the stack in different layouts, and separate their variance from that of boots",
        )  # fmt: skip

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            with audit.action(on_server(), Action.SUBMIT) as entry:
                tests = options["tests"] or TESTS
                text = plan_text(options["target"], tests, options["minutes"], layouts=options["layouts"])
                run = services.submit(text, options["testbed"])
                entry.subject, entry.detail = f"run {run.number}", f"plan {run.plan} on {run.testbed}"
        except (PlanError, services.RunError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"run {run.number} is queued: {settings.SITE_URL}/runs/{run.number}/")
