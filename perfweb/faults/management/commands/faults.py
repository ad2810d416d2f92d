# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py faults`: lists faults of unattended loops, and clears those that an operator has handled."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from perfweb.faults import services
from perfweb.faults.models import Fault


class Command(BaseCommand):
    help = "Lists the failing items of background loops, each with its error and what to do."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--clear", nargs="+", type=int, metavar="NUMBER", help="faults that are dealt with")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["clear"]:
            count, _by_model = Fault.objects.filter(pk__in=options["clear"]).delete()
            self.stdout.write(f"{count} cleared")
            return
        for fault in services.current():
            self.stdout.write(f"{fault.pk}: {fault}\n    {fault.error}\n    {fault.advice}")
        if not services.current().exists():
            self.stdout.write("no faults")
