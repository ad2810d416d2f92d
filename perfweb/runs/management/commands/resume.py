# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py resume N`: queues an interrupted or failed run again; its results are kept."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.permissions import Action
from perfweb.runs import services


class Command(BaseCommand):
    help = "Queues an interrupted or failed run again; its results are kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("number", type=int, help="number of the run")

    def handle(self, *_: Any, **options: Any) -> None:
        number = options["number"]
        try:
            with audit.action(on_server(), Action.RESUME, f"run {number}"):
                run = services.resume(number)
        except services.RunError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{run} is {run.state}")
