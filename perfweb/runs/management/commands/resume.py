# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py resume N`: queues an interrupted or failed run again; what it has measured is kept."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.runs import services


class Command(BaseCommand):
    help = "Queues an interrupted or failed run again; what it has measured is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("number", type=int, help="number of the run")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            run = services.resume(options["number"])
        except services.RunError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{run} is {run.state}")
