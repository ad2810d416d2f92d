# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py cancel N`: ends a run; one that is measuring restores its testbed first."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts.actors import on_server
from perfweb.runs import control
from perfweb.runs.services import RunError


class Command(BaseCommand):
    help = "Ends a run; one that is measuring restores its testbed first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("number", type=int, help="number of the run")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            run = control.cancel(options["number"], on_server())
        except RunError as error:
            raise CommandError(str(error)) from None
        ending = " and will be cancelled in a moment" if run.cancel_requested else ""
        self.stdout.write(f"{run} is {run.state}{ending}")
