# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py demo`: runs the demo plan, shows its progress, and prints the comparison."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.reports.following import follow_to_its_verdict
from perfweb.runs.models import Run

TESTBED = "demo"


class Command(BaseCommand):
    help = "Runs the demo plan on the testbed `demo`, shows its progress and prints the comparison."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--plan", default="demo", help="another plan (file or name of a shipped one)")

    def handle(self, *_: Any, **options: Any) -> None:
        inventory = Path(settings.LAB_INVENTORY)
        if not inventory.is_file():
            raise CommandError(f"there is no lab, for {inventory} is not there: start the demo with ./dev demo")
        call_command("register_testbed", TESTBED, inventory=inventory, stdout=self.stdout)
        call_command("submit", options["plan"], testbed=TESTBED, stdout=self.stdout)
        follow_to_its_verdict(Run.objects.filter(testbed__name=TESTBED).latest("number").number, self.stdout)
