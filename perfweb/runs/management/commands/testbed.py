# SPDX-License-Identifier: BSD-2-Clause
"""`manage.py testbed NAME out WHY…` and `manage.py testbed NAME back`: maintenance and quarantine."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from perfweb.accounts.actors import on_server
from perfweb.lab.outages import OutageError
from perfweb.runs import control
from perfweb.runs.services import RunError


class Command(BaseCommand):
    help = "Takes a testbed out of service, or puts it back from maintenance or quarantine."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("testbed", help="name of the testbed")
        parser.add_argument("service", choices=["out", "back"])
        parser.add_argument("why", nargs="*", help="why it goes out of service, for people")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            if options["service"] == "out":
                state = f"in {control.maintain(options['testbed'], ' '.join(options['why']), on_server())}"
            else:
                ended = control.put_back(options["testbed"], on_server())
                state = f"back in service, from {' and '.join(outage.kind for outage in ended)}"
        except (RunError, OutageError) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"testbed {options['testbed']} is {state}")
