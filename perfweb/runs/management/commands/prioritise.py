# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py prioritise N low|normal|high`: moves a queued run before others, or after them."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts import audit
from perfweb.accounts.actors import on_server
from perfweb.accounts.permissions import Action
from perfweb.runs import services
from perfweb.runs.models import Priority


class Command(BaseCommand):
    help = "Has a run that waits go before others, or after them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("number", type=int, help="number of the run")
        parser.add_argument("priority", choices=Priority.labels)

    def handle(self, *_: Any, **options: Any) -> None:
        number, priority = options["number"], options["priority"]
        try:
            with audit.action(on_server(), Action.PRIORITISE, f"run {number}", priority):
                run = services.prioritise(number, Priority[priority.upper()])
        except services.RunError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{run} waits with {priority} priority")
